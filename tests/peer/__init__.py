"""fairseq's own behaviour with this plugin imported and without: the same.

``python -m tests.peer --fairseq CHECKOUT`` runs fairseq's own tests, those in the folder ``tests`` of a checkout or of
an unpacked source distribution, against the installed package, once as they are and once with the plugin imported. It
names the tests whose outcomes differ. ``--only NAME ...`` runs some files. The source distribution of ``fairseq-fixed``
has most of them: ``pip download --no-deps --no-binary :all: fairseq-fixed``. The checks in ``test_same_behaviour.py``
run in the suite and need no checkout.
"""
