// Forms that choose servers and their tools: search over all of them, and take or leave what is shown at once.
// What a search does not show is only hidden: what was chosen there stays chosen.

const MOST_OPENED = 40;

for (const part of document.querySelectorAll("[data-choosing]")) {
  const find = part.querySelector("[data-find]");
  const found = part.querySelector("[data-found]");
  const rows = [...part.querySelectorAll(".server-row")].map((row) => ({
    row,
    use: row.querySelector(".use input"),
    only: row.querySelector("[data-only]"),
    count: row.querySelector("[data-count]"),
    tools: [...row.querySelectorAll("[data-tool]")].map((label) => ({ label, box: label.querySelector("input") })),
  }));

  const tell = ({ only, count, tools }) => {
    const chosen = tools.filter((tool) => tool.box.checked).length;
    count.textContent = tools.length === 0 ? "" : only.value === "" ? `all ${tools.length}` : `${chosen} of ${tools.length}`;
  };

  const take = (one) => {
    one.use.checked = true;
    one.only.value = "1";
  };

  const look = () => {
    const wanted = find.value.trim().toLowerCase();
    let servers = 0;
    let tools = 0;
    for (const one of rows) {
      const isMeant = one.row.dataset.text.includes(wanted);
      let shown = 0;
      for (const { label } of one.tools) {
        const isShown = isMeant || label.dataset.tool.includes(wanted);
        if (label.hidden === isShown) label.hidden = !isShown;
        if (isShown) shown += 1;
      }
      const isShown = isMeant || shown > 0;
      if (one.row.hidden === isShown) one.row.hidden = !isShown;
      one.hasFound = wanted !== "" && shown > 0;
      if (isShown) servers += 1;
      tools += shown;
    }
    const isOpened = servers <= MOST_OPENED;
    for (const one of rows) one.row.classList.toggle("searched", one.hasFound && isOpened);
    const more = isOpened ? "" : ": search for more of a name to choose among their tools";
    found.textContent = wanted === "" ? "" : `${servers} servers and ${tools} tools are shown${more}`;
  };

  // A server of which all tools are had anyway is left alone.
  const choose = (some, isChosen) => {
    for (const one of some) {
      const isOpen = one.use.checked ? one.only.value !== "" : one.row.classList.contains("searched");
      const shown = one.tools.filter((tool) => !tool.label.hidden);
      if (one.row.hidden || !isOpen || shown.length === 0) continue;
      for (const { box } of shown) box.checked = isChosen;
      if (isChosen) take(one);
      tell(one);
    }
  };

  find.addEventListener("input", look);
  find.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault();
  });
  part.addEventListener("change", (event) => {
    const one = rows.find(({ row }) => row.contains(event.target));
    if (!one) return;
    if (event.target.checked && event.target.closest("[data-tool]")) take(one);
    tell(one);
  });
  part.addEventListener("click", (event) => {
    const button = event.target.closest("[data-choose]");
    if (!button) return;
    const own = rows.filter(({ row }) => row.contains(button));
    choose(own.length > 0 ? own : rows, button.dataset.choose === "all");
  });
  part.querySelector("[data-look]").remove();
  for (const one of part.querySelectorAll("[data-enhanced]")) one.hidden = false;
  rows.forEach(tell);
  look();
}
