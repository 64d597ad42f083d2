"""Experts that take so many tokens of a sequence and no more (Switch Transformers)."""

from .router import Router


class CapacityRouter(Router):
    """A token beyond the capacity of its expert gets weight 0, so that only its residual goes on (Fedus et al. 2021).

    What the expert makes of it is counted all the same. capacity: tokens of one sequence that an expert takes in one
    pass, the first ones.
    """

    capacity: int = None

    def route(self, ops, p, logits):
        index, weights = Router.route(self, ops, p, logits)
        return index, ops.keep_first(weights, index, self.capacity)


def limited(fields, router):
    """That router with the capacity that a card gives."""
    capacity = fields["expert_capacity"]
    if type(router) is not Router or router.normalized:
        why = "none with router = 'sparsemixer' or router_normalized"
        fields.refuse("expert_capacity", capacity, why)
    return CapacityRouter(**router.__dict__, capacity=capacity)
