"""Tests of tree_fairseq.scoring."""
