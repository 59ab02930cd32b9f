"""The page in a real Chromium, against the cluster of `corral demo`.

`conftest.py` starts both once a file; `axe.py` fetches what judges accessibility. Without a
Chromium these tests are skipped and say so; CORRAL_BROWSER=required makes that a failure.
"""
