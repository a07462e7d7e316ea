"""The step from a node of a generated tree to its children (Chen, Liu & Song 2018)."""

from __future__ import annotations

import torch
from fairseq.modules import FairseqDropout
from torch import Tensor, nn

from tree_fairseq.modules.branch_linear import BranchLinear, by_branch


class TopDownLSTM(nn.Module):
    """An LSTM with weights of its own for each branch, and attention to the nodes of a source.

    A node is predicted from e (Chen et al. 2018, section 3.2), over source states s_j::

        a_j ∝ exp(s_j · W_0 h)      e = tanh(W_1 Σ_j a_j s_j + W_2 h)

    The state of its child on branch k is ``LSTM_k((h, c), [embedding of the node's symbol; e])``: that e goes to the
    children is the paper's parent attention feeding.

    Args:
        embed_dim: E, width of the symbols' embeddings
        hidden_dim: width D of the states and of the source
        degree: number of branches n
        feeds_attention: whether children are given e
        dropout: probability, of e
    """

    def __init__(self, embed_dim: int, hidden_dim: int, degree: int, feeds_attention: bool = True, dropout: float = 0.0):
        super().__init__()
        self.feeds_attention = feeds_attention
        self.cells = BranchLinear(degree, embed_dim + (2 if feeds_attention else 1) * hidden_dim, 4 * hidden_dim)
        self.query = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.output = nn.Linear(2 * hidden_dim, hidden_dim, bias=False)
        self.dropout = FairseqDropout(dropout, module_name=type(self).__name__)

    def descend(
        self, h: Tensor, c: Tensor, e: Tensor, embedded: Tensor, sizes: list[int], layers: list
    ) -> tuple[Tensor, Tensor]:
        """The states of children, sorted by branch.

        Args:
            h, c, e: of the parent of each child, ``[M, D]``
            embedded: the parents' symbols, ``[M, E]``
            sizes: number of children on each branch, n of them
            layers: of ``self.cells``

        Returns:
            h and c, each ``[M, D]``
        """
        inputs = torch.cat([embedded, h, e] if self.feeds_attention else [embedded, h], dim=1)
        i, f, o, u = by_branch(inputs, sizes, layers).chunk(4, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * u.tanh()
        return o.sigmoid() * c.tanh(), c

    def attend(self, h: Tensor, source: Tensor, source_padding: Tensor) -> tuple[Tensor, Tensor]:
        """Looks at the source.

        Args:
            h: ``[R, W, D]``, W states for each row
            source: ``[R, N, D]``
            source_padding: ``[R, N]`` bool, what is not looked at

        Returns:
            e, ``[R, W, D]``, and the weights, ``[R, W, N]``
        """
        scores = self.query(h) @ source.transpose(1, 2)
        # Half precision is too coarse for a softmax; double precision is kept.
        scores = scores.float() if scores.dtype in (torch.half, torch.bfloat16) else scores
        weights = scores.masked_fill(source_padding.unsqueeze(1), -torch.inf).softmax(-1).type_as(h)
        e = self.output(torch.cat([weights @ source, h], dim=-1)).tanh()
        return self.dropout(e), weights
