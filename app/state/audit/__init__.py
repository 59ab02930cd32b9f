"""The books are what the records say, or Corral has a bug.

`differences.py` compares them piece by piece, `healing.py` corrects the books.
"""
