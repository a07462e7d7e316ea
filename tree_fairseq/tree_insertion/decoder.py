"""Decoder of partial trees, which scores the labels of all slots (Lukovnikov & Fischer 2021, section 3.2).

A slot sees only its immediate neighbours, each through a linear map of its own (section 3.2.3):

=================  =============================================================
slot of node u     sum of
=================  =============================================================
`DESCENDANT`       u as ancestor
`ANCESTOR`         u as descendant
`FIRST_CHILD`      u as parent, its first child as right neighbour
`NEXT_SIBLING`     u's parent as parent, u as left and, if it has one, its next
                   sibling as right neighbour
=================  =============================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

import torch
from fairseq.models.transformer import Embedding, TransformerDecoderBase
from torch import Tensor, nn
from torch.nn import functional

from tree_fairseq.errors import InputError
from tree_fairseq.nn.encoders import encoder_of
from tree_fairseq.nn.shared_memory import ProjectedMemory, cross_attention_options
from tree_fairseq.python_versions import zip_equal
from tree_fairseq.tree_insertion.relations import PreorderTrees, TreeRelationAttention, TreeRelations, structure_tokens
from tree_fairseq.tree_insertion.slots import ANCESTOR, DESCENDANT, FIRST_CHILD, IN_TREE, KINDS, NEXT_SIBLING

ROLES = 5
AS_ANCESTOR, AS_DESCENDANT, AS_PARENT, AS_LEFT, AS_RIGHT = range(ROLES)
_NONE = -1
# The roles of the neighbours of a slot (`slot_neighbours`), by its kind; a role without a neighbour is not used.
_ROLES_OF = {
    DESCENDANT: (AS_ANCESTOR, 0, 0), ANCESTOR: (AS_DESCENDANT, 0, 0), FIRST_CHILD: (AS_PARENT, AS_RIGHT, 0),
    NEXT_SIBLING: (AS_PARENT, AS_LEFT, AS_RIGHT),
}  # fmt: skip


class SlotVectors(nn.Module):
    """Vectors of all slots of a batch, of width D."""

    def __init__(self, width: int):
        super().__init__()
        self.maps = nn.Linear(width, ROLES * width)
        for matrix in self.maps.weight.split(width):
            nn.init.xavier_uniform_(matrix)
        nn.init.zeros_(self.maps.bias)
        self.register_buffer("roles", torch.tensor([_ROLES_OF[kind] for kind in range(KINDS)]), persistent=False)

    def forward(self, states: Tensor, trees: PreorderTrees, slots: Tensor) -> Tensor:
        """Adds up the mapped states ``[B, M, D]`` of the neighbours of each slot ``[Z]``; returns ``[Z, D]``."""
        nodes = trees.is_node.flatten().nonzero().squeeze(1)
        mapped = self.maps(states.flatten(0, 1).index_select(0, nodes)).view(-1, states.size(2))  # nodes * 5 x D
        # Row 0 stands for a missing neighbour; sums leave it out.
        mapped = functional.pad(mapped, (0, 0, 1, 0))
        rank = trees.is_node.flatten().cumsum(0) - 1
        node = slot_neighbours(trees).view(-1, self.roles.size(1)).index_select(0, slots)  # Z x 3
        role = self.roles.index_select(0, IN_TREE.kind(slots))
        rows = (rank[node.clamp(min=0)] * ROLES + role + 1).masked_fill(node == _NONE, 0)
        return functional.embedding_bag(rows, mapped, mode="sum", padding_idx=0)


def slot_neighbours(trees: PreorderTrees) -> Tensor:
    """Finds up to three neighbours of all slots, in the order of their roles, ``[B, M, 4, 3]`` int64.

    They are places in the flattened ``[B * M]`` nodes, or -1; entries of slots that do not exist mean nothing.
    """
    batch, width = trees.parents.shape
    parents = trees.parents
    own = trees.places.expand(batch, width)
    none = own.new_full((1, 1), _NONE).expand(batch, width)
    # The next sibling is the node after the subtree, if the two have the same parent.
    following = trees.ends.clamp(max=width - 1)
    has_next = (trees.ends < width) & (parents.gather(1, following) == parents)
    neighbours = {
        DESCENDANT: (own, none, none),
        ANCESTOR: (own, none, none),
        FIRST_CHILD: (own, (own + 1).clamp(max=width - 1), none),
        NEXT_SIBLING: (parents, own, following.masked_fill(~has_next, _NONE)),
    }
    nodes = torch.stack([node for kind in range(KINDS) for node in neighbours[kind]], dim=2)
    first = width * torch.arange(batch, device=own.device).view(-1, 1, 1)
    return (nodes + first).masked_fill(nodes == _NONE, _NONE).unflatten(2, (KINDS, -1))


@dataclass(frozen=True)
class DecoderMemory:
    """Keys and values of R rows for each layer of a decoder, projected once; rows leave them during decoding."""

    layers: tuple[ProjectedMemory, ...]

    def select(self, rows: Tensor) -> DecoderMemory:
        """Selects rows, ``[R']`` int64; they may be permuted, repeated and left out."""
        return DecoderMemory(tuple(layer.select(rows) for layer in self.layers))


class TreeInsertionDecoder(TransformerDecoderBase):
    """fairseq's transformer decoder over nodes, which attend to all nodes of their tree by their relations.

    With absolute positions it reads the tree as a sequence of labels and brackets instead, without relations.
    """

    def __init__(self, cfg, dictionary, embed_tokens, no_encoder_attn: bool = False, output_projection=None):
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn, output_projection)
        self.memory_type = encoder_of(cfg).memory
        self.relations = self.embed_brackets = None
        if cfg.absolute_positions:
            self.embed_brackets = Embedding(2, embed_tokens.embedding_dim, None)
        else:
            self.embed_positions = None
            self.relations = TreeRelations(self.embed_dim // cfg.decoder.attention_heads, not cfg.no_child_relations)
        self.slots = SlotVectors(self.embed_dim)
        self.delete = nn.Linear(self.embed_dim, 1) if cfg.deletion else None

    def build_decoder_layer(self, cfg, no_encoder_attn: bool = False):
        layer = super().build_decoder_layer(cfg, no_encoder_attn)
        cross = cross_attention_options(cfg)
        if not cfg.absolute_positions:
            own = {name: cross[name] for name in ("embed_dim", "num_heads", "dropout", "q_noise", "qn_block_size")}
            layer.self_attn = TreeRelationAttention(self_attention=True, **own)
        layer.encoder_attn = encoder_of(cfg).memory.attention(cfg, **cross)
        return layer

    def project(self, encoder_out: dict[str, list]) -> DecoderMemory:
        states, memory = self.memory_type.view(encoder_out)
        return DecoderMemory(tuple(layer.encoder_attn.project(states, memory) for layer in self.layers))

    def forward(self, partial_tree: dict[str, Tensor], memory: DecoderMemory) -> dict[str, Optional[Tensor]]:
        """Scores what may be inserted in partial trees; see :meth:`TreeInsertionTransformerModel.forward`."""
        labels = partial_tree["labels"]
        trees = PreorderTrees.of(partial_tree["parents"], labels != self.padding_idx)
        states = self._node_states(labels, trees, memory)  # B x M x D
        vectors = self.slots(states, trees, partial_tree["slots"])
        if self.project_out_dim is not None:
            vectors = self.project_out_dim(vectors)
        delete = None if self.delete is None else self.delete(states).squeeze(2)
        return {"slot": partial_tree["slots"], "logits": self.output_layer(vectors), "delete": delete}

    def _node_states(self, labels: Tensor, trees: PreorderTrees, memory: DecoderMemory) -> Tensor:
        if self.relations is not None:
            return self._states(labels, self.embed_tokens.weight, self.relations(trees), memory)
        count = self.embed_tokens.num_embeddings
        tokens, places = structure_tokens(labels, trees, count, count + 1, self.padding_idx)
        if tokens.size(1) > self.max_positions():
            raise InputError(
                f"a partial tree of {int(trees.is_node.sum(1).amax())} nodes is a sequence of {tokens.size(1)} labels "
                f"and brackets, longer than --max-target-positions {self.max_positions()}"
            )
        table = torch.cat([self.embed_tokens.weight, self.embed_brackets.weight])
        states = self._states(tokens, table, tokens.eq(self.padding_idx), memory)
        return states.gather(1, places.unsqueeze(2).expand(-1, -1, states.size(2)))

    def _states(self, tokens: Tensor, table: Tensor, self_attn_padding_mask: Any, memory: DecoderMemory) -> Tensor:
        """States ``[B, T, D]`` after all layers of tokens ``[B, T]``, which are rows of an embedding table.

        fairseq's layer hands ``self_attn_padding_mask`` on unread: with relations it holds those.
        """
        x = self.embed_scale * functional.embedding(tokens, table, self.padding_idx)
        if self.quant_noise is not None:
            x = self.quant_noise(x)
        if self.project_in_dim is not None:
            x = self.project_in_dim(x)
        if self.embed_positions is not None:
            x = x + self.embed_positions(tokens)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        x = self.dropout_module(x).transpose(0, 1)  # T x B x D
        for layer, projected in zip_equal(self.layers, memory.layers):
            x, _, _ = layer(x, encoder_out=projected, self_attn_padding_mask=self_attn_padding_mask)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        return x.transpose(0, 1)
