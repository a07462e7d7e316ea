"""Files, progress, logs, options, error reports and optional libraries: nothing about trees, nothing about fairseq."""
