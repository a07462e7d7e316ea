"""Tests of the data preparation in preprocess/."""
