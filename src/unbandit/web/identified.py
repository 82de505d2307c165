"""The page's main part for an answer to: which rule made this log?"""

from __future__ import annotations

import base64
import math

from jinja2 import Environment, StrictUndefined

from unbandit.identification import Identification
from unbandit.plots import svg

__all__ = ["identified_page"]

_TEMPLATE = """
<h1>Which rule made this log?</h1>
<p class="answer">{{ said }}.</p>
{% if taken %}
<p>The report below takes <code>{{ taken }}</code> for granted. To ask otherwise, go back and choose the rule
yourself.</p>
{% elif why %}
<p>What each arm was worth could not be estimated with it: <bdi>{{ why }}</bdi></p>
{% else %}
<p>To see what each arm was worth, go back and choose the rule that you believe in. The answer is as good as that
choice.</p>
{% endif %}
<section aria-labelledby="candidates">
<h2 id="candidates">The candidates</h2>
<div class="scroll" role="region" aria-label="The candidates, a table" tabindex="0">
<table>
<caption>How probable each rule is after this log, all being equally likely before, and each rule's unknown parameters
averaged over.</caption>
<thead><tr><th scope="col">rule</th><th scope="col">probability</th><th scope="col">most probable parameters</th>
<th scope="col">why not</th></tr></thead>
<tbody>
{% for each in found.candidates %}
<tr><th scope="row"><bdi>{{ each.name }}</bdi></th>
<td>{{ share(each.probability) if each.possible else "0" }}</td>
<td><code>{{ each.guesses[0].rule if each.possible else "" }}</code></td>
<td><bdi>{{ each.reason or "" }}</bdi></td></tr>
{% endfor %}
</tbody>
</table>
</div>
<figure>
<div class="frame" tabindex="0" role="group" aria-label="The candidates, the picture">
<img src="data:image/svg+xml;base64,{{ picture }}" alt="Two panels: how far each candidate's log evidence is
behind the leading one, and the record beside what the leading one makes.">
</div>
</figure>
</section>
<section aria-labelledby="check">
<h2 id="check">Does it reproduce the record?</h2>
<p><code>{{ found.check.candidate }}</code> {{ "reproduces" if found.check.fits else "does not reproduce" }} the record:
p = {{ "%.2g" | format(found.check.probability) }} in {{ found.check.simulations }} simulations.</p>
{% if found.warnings or found.notes %}
<ul>
{% for notice in found.warnings %}<li><strong>Warning.</strong> <bdi>{{ notice.message }}</bdi></li>{% endfor %}
{% for notice in found.notes %}<li><bdi>{{ notice.message }}</bdi></li>{% endfor %}
</ul>
{% endif %}
</section>
"""


def identified_page(found: Identification, name: str, taken: str | None, why: str = "") -> str:
    """Write the verdict, the candidates, and whether the leading one reproduces the record.

    Parameters
    ----------
    found, name
        The answer, and what the log is called.
    taken
        The rule that the report beside it takes for granted, if there is one.
    why
        Why there is none, where one was tried.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    said = f"Of {name}: {found.answer()}"
    picture = base64.b64encode(svg(found.plot()).encode()).decode("ascii")
    return environment.from_string(_TEMPLATE).render(
        found=found, said=said, taken=taken, why=why, picture=picture, share=_share
    )  # fmt: skip


def _share(probability: float) -> str:
    """Write a probability for people.

    Examples
    --------
    >>> _share(0.98714), _share(1e-9), _share(1.0)
    ('0.987', 'below 0.001', 'above 0.999')
    """
    if math.isclose(probability, 0, abs_tol=0.0005):
        return "below 0.001"
    return "above 0.999" if probability > 0.9995 else f"{probability:.3f}"
