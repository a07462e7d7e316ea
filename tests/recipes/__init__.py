"""Tests of the recipes in examples/, on made-up corpora."""
