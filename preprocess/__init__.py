"""Converters of data sets: published or invented data become aligned lines and trees."""
