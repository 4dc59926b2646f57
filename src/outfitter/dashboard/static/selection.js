// Forms that choose servers and their tools: search over all of them, and take or leave what is shown at once.
// What a search does not show is only hidden: what was chosen there stays chosen.

for (const part of document.querySelectorAll("[data-choosing]")) {
  const find = part.querySelector("[data-find]");
  const found = part.querySelector("[data-found]");
  const rows = [...part.querySelectorAll(".server-row")].map((row) => ({
    row,
    use: row.querySelector(".use input"),
    count: row.querySelector("[data-count]"),
    tools: [...row.querySelectorAll("[data-tool]")].map((label) => ({ label, box: label.querySelector("input") })),
  }));

  const tell = ({ count, tools }) => {
    const chosen = tools.filter((tool) => tool.box.checked).length;
    count.textContent = tools.length === 0 ? "" : chosen === 0 ? `none of ${tools.length} ticked` : `${chosen} of ${tools.length} ticked`;
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
      one.row.classList.toggle("searched", wanted !== "" && shown > 0);
      if (isShown) servers += 1;
      tools += shown;
    }
    found.textContent = wanted === "" ? "" : `${servers} servers and ${tools} tools are shown`;
  };

  const choose = (some, isChosen) => {
    for (const one of some) {
      const isOpen = one.use.checked || one.row.classList.contains("searched");
      if (one.row.hidden || !isOpen) continue;
      const shown = one.tools.filter((tool) => !tool.label.hidden);
      for (const { box } of shown) box.checked = isChosen;
      if (isChosen && shown.length > 0) one.use.checked = true;
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
    if (event.target.checked && event.target.closest("[data-tool]")) one.use.checked = true;
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
