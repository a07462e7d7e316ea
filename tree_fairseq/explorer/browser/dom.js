// Elements, texts and announcements. Text enters the page as text nodes and attributes only, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

// Characters that a reader cannot see, or that change the order of others: controls, bidirectional marks, separators.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\p{Cs}/gu;

/** The text with its hidden characters written out, such as ⟨U+202E⟩. */
function visible(text) {
  return String(text).replace(HIDDEN, (character) => {
    const code = character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    return `⟨U+${code}⟩`;
  });
}

/** An HTML element. Attributes named on… are listeners, those named --… are style properties; null leaves one out. */
function html(name, attributes = {}, ...children) {
  return complete(document.createElement(name), attributes, children);
}

/** An SVG element; see html(). */
function svg(name, attributes = {}, ...children) {
  return complete(document.createElementNS(SVG, name), attributes, children);
}

function complete(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key.startsWith("--")) element.style.setProperty(key, value);
    else element.setAttribute(key, value === true ? "" : visible(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : visible(child));
  }
  return element;
}

/** Tells screen readers what has changed. */
function announce(text) {
  document.getElementById("announcement").textContent = visible(text);
}

/** A text of a sentence: its direction is its own, and it does not change the order of what stands around it. */
function quoted(text, attributes = {}) {
  return html("bdi", { dir: "auto", ...attributes }, text);
}

/** A number for readers: at most ``digits`` decimals, a real minus, "–" if there is none. */
function shown(value, digits = 2) {
  if (value === null || value === undefined) return "–";
  return value.toFixed(digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "").replace(/^-0$/, "0").replace(/^-/, "−");
}

/** A share as a percentage. */
function percent(value) {
  const hundredths = 100 * value;
  return `${hundredths > 0 && hundredths < 1 ? hundredths.toFixed(1) : Math.round(hundredths)} %`;
}

/** "1 word", "2 words". */
function counted(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

let lastIdentifier = 0;

/** An identifier that no other element of the page has. */
function identifier(prefix) {
  lastIdentifier += 1;
  return `${prefix}-${lastIdentifier}`;
}

/**
 * The index that an arrow key, Home or End moves to, or null for other keys.
 * ``before`` and ``after`` are the keys of one step.
 */
function moved(event, index, count, before = ["ArrowUp", "ArrowLeft"], after = ["ArrowDown", "ArrowRight"]) {
  if (event.ctrlKey || event.altKey || event.metaKey || !count) return null;
  const steps = { Home: -count, End: count, PageUp: -10, PageDown: 10 };
  const step = before.includes(event.key) ? -1 : after.includes(event.key) ? 1 : steps[event.key];
  return step === undefined ? null : Math.max(0, Math.min(count - 1, index + step));
}
