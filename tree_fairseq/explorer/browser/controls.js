// Controls that several views share: checkboxes, choices, sliders over steps.

function checkbox(label, onchange, checked = false) {
  const box = html("input", { type: "checkbox", checked, onchange: () => onchange(box.checked) });
  return html("label", { class: "check" }, box, " ", label);
}

/** A labelled list to choose from; ``options`` are [value, text]. */
function chooser(label, options, value, onchange) {
  const list = html(
    "select",
    { onchange: () => onchange(list.value) },
    options.map(([key, text]) => html("option", { value: key, selected: String(key) === String(value) }, text)),
  );
  return html("label", { class: "choose" }, html("span", {}, label), list);
}

/** The chooser of a layer: -1 is the mean of all. */
function layerChooser(layers, settings, onchange) {
  if (settings.layer >= layers) settings.layer = -1;
  const options = Array.from({ length: layers }, (unused, layer) => [layer, layerName(layers, layer)]);
  if (layers === 1) settings.layer = 0;
  else options.unshift([-1, layerName(layers, -1)]);
  return chooser("Layer", options, settings.layer, (value) => {
    settings.layer = Number(value);
    onchange();
  });
}

function layerName(layers, layer) {
  return layer < 0 ? `Mean of the ${layers} layers` : `Layer ${layer + 1} of ${layers}`;
}

/** One choice of several buttons, as radio buttons: arrow keys choose. ``options`` are [value, text]. */
function choice(label, options, value, onchange, attributes = {}) {
  const buttons = options.map(([key, text]) =>
    html("button", { type: "button", role: "radio", onclick: () => choose(key) }, text),
  );
  let current = options.findIndex(([key]) => key === value);
  const group = html("div", { role: "radiogroup", "aria-label": label, onkeydown: key, class: "choice", ...attributes }, buttons);
  mark();
  return group;

  function mark() {
    buttons.forEach((button, index) => {
      button.setAttribute("aria-checked", String(index === current));
      button.setAttribute("tabindex", index === Math.max(0, current) ? "0" : "-1");
    });
  }

  function choose(key) {
    current = options.findIndex(([other]) => other === key);
    mark();
    buttons[current].focus();
    onchange(key);
  }

  function key(event) {
    const index = moved(event, current, options.length);
    if (index === null) return;
    event.preventDefault();
    choose(options[index][0]);
  }
}

/** A slider over steps with buttons to both sides, and one that plays all steps if ``play`` is set. */
function stepper({ label, count, value, name, onstep, play = false }) {
  let step = value;
  let timer = null;
  const range = html("input", { type: "range", min: 0, max: count - 1, step: 1, value, "aria-label": label, oninput: () => go(Number(range.value)) });
  const back = html("button", { type: "button", class: "icon", "aria-label": "Previous step", onclick: () => go(step - 1) }, "‹");
  const next = html("button", { type: "button", class: "icon", "aria-label": "Next step", onclick: () => go(step + 1) }, "›");
  const player = play ? html("button", { type: "button", class: "play", onclick: toggle }, "Play") : null;
  const output = html("output", { "aria-live": "polite" });
  const element = html("div", { class: "stepper", role: "group", "aria-label": label }, player, back, range, next, output);
  show();
  return element;

  function show() {
    range.value = step;
    const text = name(step);
    output.textContent = visible(text);
    range.setAttribute("aria-valuetext", visible(text));
    // A button that is disabled would lose the focus.
    back.setAttribute("aria-disabled", String(step === 0));
    next.setAttribute("aria-disabled", String(step === count - 1));
  }

  function go(target) {
    step = Math.max(0, Math.min(count - 1, target));
    show();
    onstep(step);
  }

  function toggle() {
    if (timer !== null) return stop();
    if (step === count - 1) go(0);
    player.textContent = "Pause";
    timer = setInterval(() => {
      if (!element.isConnected || step >= count - 1) return stop();
      go(step + 1);
      if (step === count - 1) stop();
    }, 1100);
    return undefined;
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    player.textContent = "Play";
  }
}
