"""What ``fairseq-preprocess`` does when it is asked for trees."""
