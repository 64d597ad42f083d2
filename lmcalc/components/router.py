"""Routers: which experts a token uses, and with what weights."""

from .base import Component


class Router(Component):
    """A score for each of E experts, the A best of them, and their weights.

    kind: "softmax" of all logits (Fedus et al. 2021, eq. 1), "topk_softmax" of the chosen logits (Shazeer et al. 2017,
    eq. 3), "sigmoid" of each (DeepSeek V3, eq. 15), "sqrtsoftplus" of each (DeepSeek V4), "topk_sigmoid" of the chosen
    logits (Kolibri). bias: "none", "linear" (on the logits: gpt-oss), or "correction" (added for the choice alone to
    what is chosen by, a buffer: Wang et al. 2024, auxiliary-loss-free load balancing; "correction_parameter" where it
    is counted as one: Ernie 4.5). normalized: weights divided by their sum + eps. groups: None, or (their number, how
    many a token may use, "max" or "top2": what makes one the best; DeepSeek V2, sec. 2.2.2, and V3). softcap: None, or
    cap * tanh(logit / cap) on logits (Laguna).
    """

    d_model: int
    experts: int
    per_token: int
    kind: str = "softmax"
    bias: str = "none"
    normalized: bool = False
    eps: float = None
    scale: float = None
    groups: tuple = None
    softcap: float = None

    part, contraction_part = "moe_router", ("moe_router", "moe_router")

    def weights(self):
        return {"gate": "D->E"} | ({} if self.bias not in WEIGHTS else {WEIGHTS[self.bias]: "E"})

    def buffers(self):
        return {"correction": "E"} if self.bias == "correction" else {}

    def axes(self):
        return {"D": self.d_model, "E": self.experts}

    def forward(self, ops, p, x):
        """(which experts, with what weights), both BTA, of x (BTD)."""
        logits = ops.linear("BTD,DE->BTE", x, p.gate, p.get("bias"))
        with ops.fused("choose"):
            logits = logits if self.softcap is None else ops.apply("softcap", logits, cap=self.softcap)
            index, weights = self.route(ops, p, logits)
            if self.normalized:
                weights = ops.share(weights, self.eps)
            return index, weights if self.scale is None else ops.scale(weights, self.scale)

    def route(self, ops, p, logits):
        """The choice, and the scores of the chosen."""
        if self.kind in ("topk_softmax", "topk_sigmoid"):
            index = self.choice(ops, p, logits)
            chosen = ops.chosen(logits, index)
            return index, ops.softmax(chosen, "A") if self.kind == "topk_softmax" else ops.apply("sigmoid", chosen)
        scores = ops.softmax(logits, "E") if self.kind == "softmax" else ops.apply(SCORES[self.kind], logits)
        index = self.choice(ops, p, scores)
        return index, ops.chosen(scores, index)

    def choice(self, ops, p, scores):
        """The A best experts, within the best groups."""
        if self.bias in CORRECTIONS:
            scores = ops.add(scores, p.correction)
        if self.groups is not None:
            scores = ops.limit_groups(scores, *self.groups)
        return ops.choose(scores, self.per_token)


class SparseMixer(Router):
    """SparseMixer-v2 as it infers (Liu et al. 2024, GRIN; Phi-3.5-MoE), two experts a token.

    The weight of the first is its share in a softmax of the logits within 2 jitter of the largest; of the second the
    same without the first.
    """

    jitter: float = 0.01

    def route(self, ops, p, logits):
        first, one = self.best(ops, logits)
        second, two = self.best(ops, ops.exclude(logits, first))
        return ops.join(first, second), ops.join(one, two)

    def best(self, ops, x):
        """The best expert, and its weight."""
        index = ops.choose(x, 1)
        return index, ops.chosen(ops.softmax(ops.apply("near_best", x, jitter=self.jitter), "E"), index)


WEIGHTS = {"linear": "bias", "correction_parameter": "correction"}
CORRECTIONS = ("correction", "correction_parameter")
SCORES = {"sigmoid": "sigmoid", "sqrtsoftplus": "sqrt_softplus"}


def chosen_of(fields, choices):
    """How many of so many choices a token uses, which cannot be more than there are."""
    used = fields["experts_per_token"]
    if isinstance(used, int) and isinstance(choices, int) and used > choices:
        fields.refuse("experts_per_token", used, f"at most the {choices} experts that there are")
    return used


def router(fields, choices):
    """The router that a card describes, between so many choices."""
    kind, used = fields.get("router", "softmax"), chosen_of(fields, choices)
    bias, normalized = fields.get("router_bias", "none"), fields.get("router_normalized", False)
    if kind == "topk_softmax" and bias in CORRECTIONS:
        fields.refuse(
            "router_bias", bias, "none or linear, since scores of topk_softmax are known only behind the choice"
        )
    if fields.get("router_eps") is not None and not normalized:
        fields.refuse("router_eps", fields["router_eps"], "none, since router_normalized is not true")
    given = (fields["d_model"], choices, used, kind, bias, normalized, fields.get("router_eps"))
    given += (fields.get("router_scale"), _groups(fields, choices, used), fields.get("router_softcap"))
    if fields.get("router_hashed", False):
        from .hash_router import hashed

        return hashed(fields, Router(*given))
    if fields.get("expert_capacity") is not None:
        from .capacity import limited

        return limited(fields, (SparseMixer if kind == "sparsemixer" else Router)(*given))
    if kind != "sparsemixer":
        return Router(*given)
    if isinstance(used, int) and used != 2:
        fields.refuse("experts_per_token", used, "2 with router = 'sparsemixer'")
    if bias in CORRECTIONS or normalized or given[-2] is not None:
        fields.refuse("router", kind, "another with a correction, groups or router_normalized")
    return SparseMixer(*given, fields["router_jitter"])


def _groups(fields, choices, used):
    groups = fields.get("n_expert_groups")
    if groups is None:
        return None
    size, best = fields.divided("n_experts", choices, "n_expert_groups", groups), fields["expert_groups_used"]
    score = fields.get("expert_group_score", "max")
    if isinstance(best, int) and isinstance(groups, int) and best > groups:
        fields.refuse("expert_groups_used", best, f"at most n_expert_groups = {groups}")
    if all(isinstance(each, int) for each in (size, best, used)) and used > best * size:
        fields.refuse("experts_per_token", used, f"at most the {best * size} experts of {best} groups")
    if score == "top2" and isinstance(size, int) and size < 2:
        fields.refuse("expert_group_score", score, "max, since a group has 1 expert")
    return groups, best, score
