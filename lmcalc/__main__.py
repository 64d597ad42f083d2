"""python -m lmcalc"""

from .cli import main

raise SystemExit(main())
