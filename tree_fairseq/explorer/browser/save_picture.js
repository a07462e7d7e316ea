// Saves a picture as SVG or PNG, and shows where a picture is wider than its place.

const KEPT_STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight", "text-anchor", "opacity"];

/** The picture alone: its styles are written into its elements, so that any program draws it as the page does. */
function standalone(picture) {
  const copy = picture.cloneNode(true);
  const [drawn, copied] = [picture, copy].map((each) => [each, ...each.querySelectorAll("*")]);
  drawn.forEach((element, index) => {
    const style = getComputedStyle(element);
    for (const name of ["class", "style", "role", "tabindex", "id", "data-node", ...element.getAttributeNames().filter((other) => other.startsWith("aria-"))]) {
      copied[index].removeAttribute(name);
    }
    if (!["path", "rect", "text", "circle", "polygon"].includes(element.tagName)) return;
    for (const name of KEPT_STYLES) copied[index].setAttribute(name, style.getPropertyValue(name));
  });
  const { x, y, width, height } = picture.viewBox.baseVal;
  const ground = svg("rect", { x, y, width, height, fill: getComputedStyle(document.body).getPropertyValue("--surface").trim() });
  copy.insertBefore(ground, copy.firstChild);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("xmlns", SVG);
  return { source: new XMLSerializer().serializeToString(copy), width, height };
}

/** Buttons that save a picture under the beginning of its title. */
function saveButtons(picture, title) {
  const name = title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "tree";
  const give = (address, ending) => html("a", { href: address, download: `${name}.${ending}` }).click();
  const address = (source) => `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
  const asPng = () => {
    const { source, width, height } = standalone(picture);
    const image = new Image();
    image.addEventListener("load", () => {
      const scale = Math.min(2, 16000 / Math.max(width, height));
      const canvas = html("canvas", { width: Math.ceil(width * scale), height: Math.ceil(height * scale) });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      give(canvas.toDataURL("image/png"), "png");
    });
    image.src = address(source);
  };
  const button = (text, onclick) => html("button", { type: "button", class: "link", onclick }, text);
  return html("p", { class: "save quiet" }, "Save as ", button("SVG", () => give(address(standalone(picture).source), "svg")), " or ", button("PNG", asPng));
}

/**
 * The place of a picture, with a line below it while a part of the picture is out of sight. It begins at the first node
 * that is wrong, or at the root.
 */
function withScrollHint(scroll) {
  const hint = html("p", { class: "hint small quiet", hidden: true }, "↔ Scroll sideways: the picture is wider than its place.");
  let placed = false;
  new ResizeObserver(() => {
    hint.hidden = scroll.scrollWidth <= scroll.clientWidth + 1;
    const first = scroll.querySelector(".wrong") ?? scroll.querySelector(".node");
    if (placed || hint.hidden || !first) return;
    placed = true;
    for (const [side, edge, size] of [["scrollLeft", "left", "clientWidth"], ["scrollTop", "top", "clientHeight"]]) {
      scroll[side] += first.getBoundingClientRect()[edge] - scroll.getBoundingClientRect()[edge] - scroll[size] / 3;
    }
  }).observe(scroll);
  return [scroll, hint];
}
