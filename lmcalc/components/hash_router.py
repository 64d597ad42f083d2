"""Hash routing: which experts a token uses is written in a table by token id (DeepSeek V4)."""

from .router import Router


class HashRouter(Router):
    """A fixed table says which A experts a token id uses (Roller et al. 2021, Hash layers).

    The scores, and so the weights of the experts, still come from the token (DeepSeek-AI 2026, DeepSeek-V4, sec. 2.1).
    The table is a buffer.
    """

    vocab_size: int = None

    def buffers(self):
        return {"table": "V|A"}

    def axes(self):
        return Router.axes(self) | {"V": self.vocab_size, "A": self.per_token}

    def choice(self, ops, p, scores):
        return ops.named(p.table, ops.left["tokens"], self.experts)


def hashed(fields, router):
    """The router, with a table instead of a choice."""
    if router.kind not in ("softmax", "sigmoid", "sqrtsoftplus"):
        fields.refuse("router", fields.get("router", "softmax"), "softmax, sigmoid or sqrtsoftplus with router_hashed")
    if router.bias != "none" or router.groups is not None:
        given = "router_bias" if router.bias != "none" else "n_expert_groups"
        fields.refuse(given, fields.get(given), "none with router_hashed: nothing is chosen by scores")
    return HashRouter(**router.__dict__, vocab_size=fields["vocab_size"])
