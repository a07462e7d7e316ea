"""What happens between a model's scores and the text that is printed."""
