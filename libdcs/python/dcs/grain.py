"""The other side: makes a Python program a checkpointing grain. The same module as dcs_grain, which is one file that can
be put beside a program on hosts where nothing of DCS is installed."""
import sys

import dcs_grain

sys.modules[__name__] = dcs_grain
