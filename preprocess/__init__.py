"""Makers of corpora: raw or invented material becomes aligned lines and trees."""
