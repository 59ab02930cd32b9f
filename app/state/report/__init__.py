"""What goes out to people.

`reports.py` emits the events of `events.py` with the sentences of `messages/`, which `sentences.py`
chooses by what a gang is now, and repeats what is in `again/`; which pods and gangs these name is
decided in `naming.py`. Above it `evictions.py` has whole gangs evicted, and says so. `statuses.py`
writes back what a vocabulary expects on its own objects, `notes.py` what a gang has to remember on
its pods. `decisions.py` is what people read of all that, and `starts.py` measures how long gangs
take to start.
"""
