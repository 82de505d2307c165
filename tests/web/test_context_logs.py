"""Logs with features through the page's addresses, without a browser."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import pytest
from test_app import ended, text_of

import unbandit as ub

FORM = {"contexts": "on", "feature.x1": "on", "feature.x2": "on", "rule": "linucb", "linucb.preset": "usual",
        "sigma": "0.5"}  # fmt: skip


@pytest.fixture(scope="module")
def log():
    contexts = np.random.default_rng(1).standard_normal((60, 3, 2))
    instance = ub.ContextInstance([1.0, -0.5], sigma=0.5)
    return ub.LinUCB(alpha=1).demonstrate(instance, contexts, seed=1, arms=["A", "B", "C"])


@pytest.fixture(scope="module")
def data(log):
    return log.to_frame().write_csv().encode()


def looked(client, data, form=None):
    return client.post("/look", data=form or {}, files={"log": ("log.csv", data)})


def estimated(client, data, form):
    return ended(client, client.post("/estimate", data=form, files={"log": ("log.csv", data)}))


def test_offers_are_recognised_and_carried_on_to_an_answer(client, data, log):
    first = looked(client, data)
    assert first.status_code == 200
    assert "By what did the learner choose?" in text_of(first)
    assert 'name="feature.x1"' in first.text
    assert 'name="feature.round"' not in first.text
    carried = {"carried": html.unescape(re.search(r'name="carried"[^>]*value="([^"]+)"', first.text)[1])}
    again = client.post("/look", data={**FORM, **carried, "carried_name": "log.csv"})
    assert "60 rounds, 3 arms, 2 features" in text_of(again)
    answer = ended(client, client.post("/estimate", data={**FORM, **carried, "carried_name": "log.csv"}))
    assert answer.status_code == 200
    expected = ub.context_posterior(log, ub.LinUCB(alpha=1), sigma=0.5)
    files = {
        address.rsplit("/", 1)[1]: address
        for address in re.findall(r'href="(/jobs/[^"]+/files/[^"]+)" download', answer.text)
    }
    assert {"report.html", "estimate.csv", "estimate.parquet", "estimate.json"} == set(files)
    found = json.loads(client.get(files["estimate.json"]).text)["coefficients"]
    assert [(each["feature"], each["value"]) for each in found] == [
        ("x1", pytest.approx(expected.mean[0])), ("x2", pytest.approx(expected.mean[1]))
    ]  # fmt: skip
    shown = text_of(answer)
    assert "estimated" in shown
    assert "How often an arm was the best offer of its round" in shown
    assert "unbandit report log.csv --rule linucb:ridge=1.0,alpha=1.0 --features x1,x2 --sigma 0.5" in shown


def test_what_is_missing_is_said_at_its_field(client, data):
    answer = client.post("/estimate", data={"contexts": "on", "prior": "-1"}, files={"log": ("log.csv", data)})
    assert answer.status_code == 422
    said = text_of(answer)
    assert said.index("columns by which the learner chose") < said.index("Choose the rule")
    assert "Expected the noise of a reward" in said
    assert "Expected a number above 0" in said
    numbers = {**FORM, "linucb.alpha": "fit", "linucb.ridge": "fit"}
    assert "Expected a number above 0; got &#34;fit&#34;" in client.post(
        "/estimate", data=numbers, files={"log": ("log.csv", data)}
    ).text  # fmt: skip


def test_a_log_that_the_rule_cannot_have_made_is_an_answer_in_words(client, log):
    chosen = log.chosen.copy()
    chosen[0] = (np.linalg.norm(log.features[:3], axis=1).argmax() + 1) % 3
    wrong = ub.ContextLog.from_arrays(log.features.reshape(60, 3, 2), chosen).to_frame().write_csv().encode()
    answer = estimated(client, wrong, FORM)
    assert "The computation broke down" in text_of(answer)
    assert "chooses another offer in this round" in text_of(answer)


def test_a_visitor_can_say_that_there_are_no_features_and_that_there_are(client, data):
    plain = looked(client, data, {"contexts": "off"})
    assert plain.status_code == 422  # a round with three rows
    assert 'name="contexts" value="off"' in plain.text
    rounds = b"arm,age\n" + b"\n".join(b"AB"[at % 2 : at % 2 + 1] + b",%d" % (at % 7) for at in range(40))
    assert 'name="feature.age"' not in looked(client, rounds).text
    asked = looked(client, rounds, {"contexts": "on"})
    assert 'name="feature.age"' in asked.text
    shared = [looked(client, rounds, {"contexts": "on"} | more).text for more in ({}, {"linucb.ridge": "1"})]
    assert [bool(re.search(r'name="linucb.disjoint"[^>]* checked', page)) for page in shared] == [True, False]
    broken = looked(client, data, {"contexts": "on", "feature.arm": "on"})
    assert broken.status_code == 422
    assert "It cannot be used as it stands" in text_of(broken)


def test_a_first_look_says_which_rules_fit(client, data):
    answer = estimated(client, data, FORM | {"rule": "any"})
    shown = text_of(answer)
    assert re.search(r"linucb:ridge=1.0,alpha=\S+ fits", re.sub(r"\s+", " ", shown))
    assert "direction known to" in shown
    assert "choose it to see the coefficients" in shown
    assert "not in the table" not in shown
    assert 'value="any"' in looked(client, data, FORM).text
