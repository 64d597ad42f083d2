"""A dense feed-forward and a mixture of experts side by side in one layer (Gemma 4)."""

from . import norm
from .base import Component
from .feed_forward import feed_forward
from .moe import Experts
from .router import Router, chosen_of


class ScaledRouter(Router):
    """softmax of the logits of norm(x) / sqrt(D), the A best divided by their sum, times a weight of the expert."""

    norm_eps: float = 1e-6

    def weights(self):
        return {"scale": "D", "gate": "D->E", "expert_scale": "E"}

    def forward(self, ops, p, x):
        with ops.fused("router_norm"):
            x = ops.scale(ops.norm("rms_norm", x, p.scale, eps=self.norm_eps), self.d_model**-0.5)
        logits = ops.einsum("BTD,DE->BTE", x, p.gate)
        with ops.fused("choose"):
            index, weights = self.route(ops, p, logits)
            return index, ops.multiply(ops.share(weights), ops.gather(p.expert_scale, index))


class DenseAndExperts(Component):
    """Each between norms of its own, and their sum; the router reads x itself.

    dense_output_norm(dense(dense_norm(x))) + experts_output_norm(experts(experts_norm(x)))
    """

    dense: Component
    router: Component
    experts: Component
    dense_norm: Component
    dense_output_norm: Component
    experts_norm: Component
    experts_output_norm: Component

    def forward(self, ops, p, x):
        with ops.fused("norms"):
            for_dense, for_experts = p.dense_norm(x), p.experts_norm(x)
        dense, (index, weights) = p.dense(for_dense), p.router(x)
        out = p.experts(for_experts, index)
        with ops.fused("combine"):
            out = ops.sum(ops.multiply(out, weights), "A")
            return ops.add(p.dense_output_norm(dense), p.experts_output_norm(out))


def dense_and_experts(fields):
    """What a card describes."""
    if fields.get("norm_placement", "pre") != "double":
        fields.refuse("norm_placement", fields.get("norm_placement", "pre"), "double with experts_beside_ffn = true")
    experts, width = fields["n_experts"], fields["d_model"]
    used = chosen_of(fields, experts)
    expert = feed_forward(fields, fields["expert_d_ff"], "moe_experts", "expert_bias")
    return DenseAndExperts(
        feed_forward(fields), ScaledRouter(width, experts, used, norm_eps=fields.get("norm_eps", 1e-5)),
        Experts(experts, experts, used, expert), *[norm(fields, width) for _ in range(4)],
    )  # fmt: skip
