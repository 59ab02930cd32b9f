"""What is wrong with an object that is about to be stored.

`validate.py` has every error of it, `templates.py` the pods that it makes.
"""
