"""The loss head of training: from logits to one number."""

from .base import Component


class CrossEntropy(Component):
    """mean(log Z - logit of the target), log Z the stable log-sum-exp of the logits; with z, + z log(Z)**2 (z-loss).

    Chowdhery et al. 2022 (PaLM), sec. 5: z = 1e-4 keeps log Z close to 0. The logits are read once.
    """

    z: float = None

    def forward(self, ops, p, logits, targets):
        with ops.fused("loss"):
            log_z = ops.reduce("log_sum_exp", logits)
            loss = ops.subtract(log_z, ops.pick(logits, targets))
            if self.z is not None:
                loss = ops.add(loss, ops.scale(ops.multiply(log_z, log_z), self.z))
            return ops.reduce("mean", loss, over=2)


# name in trace(loss=...): the component
LOSSES = {"cross_entropy": CrossEntropy(), "z_loss": CrossEntropy(1e-4)}
