// What the page does beyond plain forms: it takes dropped files, says early what is too large, watches the work, and
// plays how an answer settled.
"use strict";

(() => {
  const upload = document.querySelector("form.upload");
  if (upload) takeFiles(upload);
  const waiting = document.getElementById("waiting");
  if (waiting) watch(waiting);
  const back = document.querySelector("button.back");
  if (back && history.length > 1) {
    back.hidden = false;
    back.addEventListener("click", () => history.back());
  }
  for (const form of document.querySelectorAll("form")) sendOnce(form);
  const settling = document.querySelector("#report-settling + figure");
  if (settling && matchMedia("(prefers-reduced-motion: no-preference)").matches) play(settling);

  // The figure is drawn from the first round to the last, once it is in sight; without this it stands still.
  function play(figure) {
    const frame = figure.querySelector(".frame");
    const again = document.createElement("button");
    again.type = "button";
    again.className = "again";
    again.textContent = "Play the rounds again";
    function start() {
      frame.classList.remove("plays");
      void frame.offsetWidth;
      frame.classList.add("plays");
    }
    again.addEventListener("click", start);
    figure.append(again);
    const sight = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      sight.disconnect();
      start();
    }, { threshold: 0.5 });
    sight.observe(frame);
  }

  function takeFiles(form) {
    const input = form.querySelector("input[type=file]");
    const zone = document.getElementById("drop");
    const said = document.getElementById("file-said");
    const limit = Number(form.dataset.limit);
    const carries = (event) => event.dataTransfer !== null && [...event.dataTransfer.types].includes("Files");

    function check() {
      const file = input.files[0];
      const large = file !== undefined && file.size > limit;
      const about = large
        ? `This file has ${size(file.size)}, and ${size(limit)} are the most. Pack it with gzip, or write it as Parquet.`
        : "";
      input.setCustomValidity(about);
      said.classList.toggle("wrong", large);
      said.textContent = about || (file === undefined ? "" : `${file.name}, ${size(file.size)}`);
    }

    input.addEventListener("change", check);
    addEventListener("dragover", (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      zone.classList.add("over");
    });
    addEventListener("dragleave", (event) => {
      if (event.relatedTarget === null) zone.classList.remove("over");
    });
    addEventListener("drop", (event) => {
      zone.classList.remove("over");
      if (!carries(event)) return;
      event.preventDefault();
      if (event.dataTransfer.files.length === 0) return;
      const first = new DataTransfer();
      first.items.add(event.dataTransfer.files[0]);
      input.files = first.files;
      check();
      form.querySelector("button.main").focus();
    });
    check();
  }

  function sendOnce(form) {
    let sent = false;
    form.addEventListener("submit", (event) => {
      if (sent) event.preventDefault();
      sent = true;
      setTimeout(() => { sent = false; }, 3000);
    });
    addEventListener("pageshow", () => { sent = false; });
  }

  function watch(place) {
    const [stage, share, seconds, told] = ["stage", "share", "seconds", "told"].map((id) => document.getElementById(id));
    let pause = 300;

    async function look() {
      let state;
      try {
        const answer = await fetch(place.dataset.state, { cache: "no-store" });
        if (answer.status === 404) return location.reload();
        if (!answer.ok) throw new Error(answer.statusText);
        state = await answer.json();
      } catch {
        say("The server does not answer. Was it stopped?");
        return setTimeout(look, 2000);
      }
      if (state.state !== "waiting" && state.state !== "running") return location.reload();
      say(words(state));
      if (state.share === null) share.removeAttribute("value");
      else share.value = state.share;
      seconds.textContent = time(state.seconds);
      pause = Math.min(pause * 1.2, 1500);
      return setTimeout(look, pause);
    }

    function say(text) {
      if (stage.textContent === text) return;
      stage.textContent = text;
      told.textContent = text;
    }

    setTimeout(look, pause);
  }

  function words(state) {
    if (state.state !== "waiting") return state.stage || "Working";
    if (!state.ahead) return "Waiting to begin";
    return `Waiting for ${state.ahead === 1 ? "one other piece" : `${state.ahead} other pieces`} of work`;
  }

  function time(seconds) {
    const whole = Math.floor(seconds);
    return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
  }

  function size(bytes) {
    for (const [unit, amount] of [["GB", 1024 ** 3], ["MB", 1024 ** 2], ["kB", 1024]]) {
      if (bytes >= amount) return `${Number((bytes / amount).toPrecision(3))} ${unit}`;
    }
    return `${bytes} bytes`;
  }
})();
