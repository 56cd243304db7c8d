/** Pages as text: the frame that all have, and what keeps text from being taken for markup. Pure. */

/** Markup that is known to be sound. */
export interface Html {
  readonly markup: string;
}

/** A template in which every value is escaped, unless it is markup or a list of it. */
export function html(
  strings: TemplateStringsArray,
  ...values: readonly (string | number | Html | readonly Html[])[]
): Html {
  const parts = strings.map((text, index) => text + shown(values[index]));
  return { markup: parts.join('') };
}

function shown(value: string | number | Html | readonly Html[] | undefined): string {
  if (value === undefined) return '';
  if (typeof value === 'string' || typeof value === 'number') return escaped(`${value}`);
  return 'markup' in value ? value.markup : value.map(({ markup }) => markup).join('');
}

export function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

export interface Page {
  readonly title: string;
  readonly body: Html;
}

export function document({ title, body }: Page): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} – Wirewatch</title>
<link rel="stylesheet" href="/manual.css">
</head>
<body>
<header><a href="/">Wirewatch</a><nav><a href="/manual">Manual</a> <a href="/metrics">Metrics</a> <a href="/openapi.json">OpenAPI</a></nav></header>
<main>
${body}
</main>
</body>
</html>
`.markup;
}

export const STYLE = `:root {
  color-scheme: light dark;
  --ink: #1c2126; --soft: #5b6670; --line: #d9dee3; --paper: #ffffff; --shade: #f3f5f7; --link: #0b5cad;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e4e8ec; --soft: #9aa6b1; --line: #343c44; --paper: #14181c; --shade: #1d2329; --link: #6cb2f5;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: 1.5rem; padding: .8rem 1.5rem; border-bottom: 1px solid var(--line); }
header > a { font-weight: 700; color: inherit; text-decoration: none; }
nav { display: flex; gap: 1rem; }
main { max-width: 56rem; margin: 0 auto; padding: 1.5rem; }
a { color: var(--link); }
h1 { font-size: 1.6rem; line-height: 1.25; }
h2 { font-size: 1.15rem; margin-top: 2rem; }
code, pre { font: .9em/1.5 ui-monospace, monospace; background: var(--shade); border-radius: 4px; }
code { padding: .1em .3em; overflow-wrap: anywhere; }
pre { padding: .8rem 1rem; overflow-x: auto; }
pre code { padding: 0; }
dt { margin-top: 1rem; font-weight: 600; overflow-wrap: anywhere; }
dd { margin: .2rem 0 0 1.5rem; }
dd.deep { margin-left: 3rem; }
li { margin: .4rem 0; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .45rem .8rem .45rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
.soft { color: var(--soft); }
`;
