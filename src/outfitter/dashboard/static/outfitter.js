// What pages do beyond links and forms: search as one types, copying, fields that help.

const box = document.getElementById("search");
const found = document.getElementById("found");
const told = document.createElement("span"); // for those who do not see the list
told.className = "hidden";
told.setAttribute("role", "status");
box?.form.append(told);

function show(items) {
  found.replaceChildren(
    ...items.map((item) => {
      const link = document.createElement("a");
      link.href = item.at;
      const kind = document.createElement("span");
      kind.className = "chip";
      kind.textContent = item.kind;
      link.append(kind, " ", item.name);
      if (item.of) {
        const of = document.createElement("span");
        of.className = "note";
        of.textContent = ` ${item.of}`;
        link.append(of);
      }
      const row = document.createElement("li");
      row.append(link);
      return row;
    }),
  );
  found.hidden = items.length === 0;
  told.textContent = items.length ? `${items.length} found, arrow keys go through them` : "nothing found";
}

// One question at a time: while it is on its way, only the newest text waits.
let asking = null;
let answered = null;
function search() {
  asking ??= ask().finally(() => (asking = null));
  return asking;
}

async function ask() {
  let asked;
  do {
    asked = box.value;
    const answer = await fetch(`/ui/search?q=${encodeURIComponent(asked)}`, { headers: { accept: "application/json" } });
    const items = answer.ok ? await answer.json() : [];
    if (asked === box.value) show(items);
  } while (asked !== box.value);
  answered = asked;
}

function move(step) {
  const links = [...found.querySelectorAll("a")];
  const here = links.indexOf(document.activeElement);
  (links[here + step] ?? (step < 0 ? box : links[0]))?.focus();
}

if (box) {
  box.addEventListener("input", search);
  box.addEventListener("focus", search);
  box.form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (answered !== box.value) await search(); // what is shown may still be for less than was typed
    const first = found.querySelector("a");
    if (first && !found.hidden) location.assign(first.href);
    else box.form.submit();
  });
  box.form.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Escape") {
      found.hidden = true;
      box.blur();
    }
  });
  document.addEventListener("click", (event) => {
    if (!box.form.contains(event.target)) found.hidden = true;
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, select");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      box.focus();
    }
  });
}

for (const button of document.querySelectorAll("[data-copy], [data-copy-from]")) {
  button.addEventListener("click", async () => {
    const from = document.getElementById(button.dataset.copyFrom);
    await navigator.clipboard.writeText(from ? from.textContent : button.dataset.copy);
    button.textContent = "Copied";
  });
}

// Forms: rows that come and go, fields that belong to a choice, and a question before something is deleted.
for (const button of document.querySelectorAll("[data-add]")) {
  const rows = document.getElementById(button.dataset.add);
  let number = rows.children.length;
  button.addEventListener("click", () => {
    const row = document.getElementById(button.dataset.template ?? "row").content.firstElementChild.cloneNode(true);
    for (const field of row.querySelectorAll("[name]")) field.name = field.name.replace("NUMBER", number);
    number += 1;
    rows.append(row);
    row.querySelector("input").focus();
  });
}
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-remove]");
  if (button) button.closest("fieldset").remove();
});
for (const form of document.querySelectorAll("[data-places]")) {
  const choose = () => {
    for (const field of form.querySelectorAll("[data-for]")) {
      field.hidden = !field.dataset.for.split(" ").includes(form.elements.type.value);
    }
  };
  form.elements.type.addEventListener("change", choose);
  choose();
}
for (const form of document.querySelectorAll("[data-confirm]")) {
  form.addEventListener("submit", (event) => {
    if (!confirm(form.dataset.confirm)) event.preventDefault();
  });
}

for (const field of document.querySelectorAll("[data-submit]")) field.addEventListener("change", () => field.form.requestSubmit());

// A form made from a JSON Schema, beside the JSON it writes. What it cannot show is typed as JSON.
class SchemaForm extends HTMLElement {
  connectedCallback() {
    this.root = JSON.parse(this.dataset.schema);
    this.out = document.getElementById(this.dataset.for);
    let value = {};
    try { value = JSON.parse(this.out.value); } catch { /* what was typed stays in its field */ }
    this.field = this.make(this.root, "Arguments", value, true);
    this.append(this.field.node);
    this.addEventListener("input", () => { this.out.value = JSON.stringify(this.field.read() ?? {}, null, 2); });
    if (this.out.value.trim() === "{}") this.out.value = JSON.stringify(this.field.read() ?? {}, null, 2);
  }

  meant(schema, depth = 0) {
    if (schema.$ref?.startsWith("#/") && depth < 8) {
      const found = schema.$ref.slice(2).split("/").reduce((at, key) => at?.[key.replaceAll("~1", "/").replaceAll("~0", "~")], this.root);
      return this.meant({ ...found, ...schema, $ref: undefined }, depth + 1);
    }
    const choices = (schema.anyOf ?? schema.oneOf ?? []).filter((one) => one.type !== "null");
    if (choices.length === 1) return this.meant({ ...schema, anyOf: undefined, oneOf: undefined, ...choices[0] }, depth + 1);
    const types = [schema.type].flat().filter((one) => one && one !== "null");
    return { ...schema, type: types.length === 1 ? types[0] : schema.properties ? "object" : undefined, choices };
  }

  label(text, schema, needed) {
    const label = document.createElement("label");
    const name = document.createElement("span");
    name.textContent = text + (needed ? " *" : "");
    const note = document.createElement("span");
    note.className = "note";
    note.textContent = schema.description ?? "";
    label.append(name, note);
    return label;
  }

  make(given, name, value, needed, depth = 0) {
    const schema = this.meant(given);
    if (schema.choices.length > 1) return this.union(schema, name, value, needed, depth);
    if (schema.type === "object" && schema.properties && depth < 6) return this.object(schema, name, value, depth);
    if (schema.type === "array" && schema.items && depth < 6) return this.list(schema, name, value, needed, depth);
    return this.plain(schema, name, value, needed);
  }

  object(schema, name, value, depth) {
    const node = document.createElement("fieldset");
    node.className = "part";
    const legend = document.createElement("legend");
    legend.textContent = name;
    node.append(legend);
    const needed = new Set(schema.required ?? []);
    const fields = Object.entries(schema.properties).map(([key, one]) => [key, this.make(one, key, value?.[key], needed.has(key), depth + 1), needed.has(key)]);
    for (const [, field] of fields) node.append(field.node);
    const read = () => {
      const found = {};
      for (const [key, field, must] of fields) {
        const said = field.read();
        const isNothing = said === undefined || (!must && typeof said === "object" && said !== null && Object.keys(said).length === 0);
        if (!isNothing) found[key] = said;
      }
      return found;
    };
    return { node, read };
  }

  list(schema, name, value, needed, depth) {
    const node = document.createElement("fieldset");
    node.className = "part";
    const legend = document.createElement("legend");
    legend.textContent = name + (needed ? " *" : "");
    const add = document.createElement("button");
    add.type = "button";
    add.textContent = "Add to " + name;
    node.append(legend, add);
    const fields = [];
    const more = (one) => {
      const field = this.make(schema.items, String(fields.length + 1), one, true, depth + 1);
      fields.push(field);
      node.insertBefore(field.node, add);
    };
    for (const one of Array.isArray(value) ? value : []) more(one);
    add.addEventListener("click", () => { more(undefined); this.dispatchEvent(new Event("input")); });
    return { node, read: () => (fields.length || needed ? fields.map((field) => field.read()) : undefined) };
  }

  union(schema, name, value, needed, depth) {
    const node = document.createElement("div");
    const label = this.label(name, schema, needed);
    const select = document.createElement("select");
    const empty = new Option("–", "");
    select.append(empty, ...schema.choices.map((one, place) => new Option(one.title ?? one.const ?? one.type ?? `form ${place + 1}`, place)));
    label.append(select);
    node.append(label);
    let field = null;
    select.addEventListener("change", () => {
      field?.node.remove();
      field = select.value === "" ? null : this.make(schema.choices[select.value], name, undefined, true, depth + 1);
      if (field) node.append(field.node);
    });
    return { node, read: () => field?.read() };
  }

  plain(schema, name, value, needed) {
    const label = this.label(name, schema, needed);
    const choices = schema.enum ?? (schema.const === undefined ? null : [schema.const]);
    const first = value ?? schema.default;
    let field;
    if (choices || schema.type === "boolean") {
      field = document.createElement("select");
      const all = choices ?? [true, false];
      field.append(new Option("–", ""), ...all.map((one, place) => new Option(String(one), place)));
      const at = all.indexOf(first);
      field.value = at < 0 ? "" : at;
      label.append(field);
      return { node: label, read: () => (field.value === "" ? undefined : all[field.value]) };
    }
    const isNumber = schema.type === "number" || schema.type === "integer";
    const isText = schema.type === "string";
    field = document.createElement(isText || isNumber ? "input" : "textarea");
    if (isNumber) Object.assign(field, { type: "number", step: schema.type === "integer" ? 1 : "any" });
    if (!isText && !isNumber) field.placeholder = "JSON";
    if (first !== undefined) field.value = isText || isNumber ? first : JSON.stringify(first);
    label.append(field);
    const read = () => {
      if (field.value === "") return isText && needed ? "" : undefined;
      if (isNumber) return Number(field.value);
      if (isText) return field.value;
      try { field.setCustomValidity(""); return JSON.parse(field.value); } catch { field.setCustomValidity("This is no JSON."); return undefined; }
    };
    return { node: label, read };
  }
}
customElements.define("schema-form", SchemaForm);

// What should be JSON is looked at as it is typed.
for (const field of document.querySelectorAll("[data-json]")) {
  const note = document.createElement("span");
  note.className = "note bad";
  note.setAttribute("role", "status");
  field.after(note);
  const look = () => {
    let fault = "";
    try { if (field.value.trim()) JSON.parse(field.value); } catch (error) { fault = `This is no JSON: ${error.message}`; }
    field.setCustomValidity(fault);
    note.textContent = fault;
  };
  field.addEventListener("input", look);
  look();
}
