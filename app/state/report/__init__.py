"""What goes out: `voice.py` (events, requeues), `messages.py`, `ungating.py` (which gates go)."""
