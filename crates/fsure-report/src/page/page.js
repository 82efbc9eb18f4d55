"use strict";
for (const form of document.querySelectorAll("form[data-table]")) {
  const table = document.getElementById(form.dataset.table);
  const body = table.tBodies[0];
  const [verdict, text] = [form.querySelector("select"), form.querySelector("input")];
  const said = form.querySelector("output");
  const filter = () => {
    const wanted = text.value.toLowerCase();
    let shown = 0;
    for (const row of body.rows) {
      row.hidden = (verdict.value !== "" && row.dataset.verdict !== verdict.value)
        || !row.textContent.toLowerCase().includes(wanted);
      if (!row.hidden) shown += 1;
    }
    said.textContent = shown + " of " + body.rows.length + " shown";
  };
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[column].dataset.key ?? row.cells[column].textContent;
      const order = new Intl.Collator("en", { numeric: true }).compare;
      const rows = [...body.rows].sort((a, b) => order(key(a), key(b)));
      body.append(...(down ? rows.reverse() : rows));
    });
  });
}
