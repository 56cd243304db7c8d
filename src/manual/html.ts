/** A topic of the manual as HTML. Its Markdown is ours, and still nothing in it becomes markup that is not Markdown's. */
import { Marked } from 'marked';

const marked = new Marked({
  // An address in the text is an example, not a link.
  tokenizer: { url: () => undefined },
  renderer: {
    // Comments say where a generated part begins.
    html: () => '',
    // Pictures are for code hosts: the console serves none.
    image: () => '',
    heading({ depth, text, tokens }) {
      return `<h${depth} id="${anchor(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
    },
    table(token) {
      const row = (cells: typeof token.header, tag: 'th' | 'td') =>
        `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')}</tr>\n`;
      const body = token.rows.map((cells) => row(cells, 'td')).join('');
      return `<div class="wide"><table>\n<thead>${row(token.header, 'th')}</thead>\n<tbody>${body}</tbody>\n</table></div>\n`;
    },
  },
  walkTokens(token) {
    if (token.type === 'link') token.href = String(token.href).replace(/^([a-z-]+)\.md(?=#|$)/, '/manual/$1');
  },
});

/** @returns markup without scripts, styles or foreign addresses other than links */
export function manualHtml(markdown: string): string {
  return marked.parse(markdown, { async: false });
}

/** As code hosts make them, so that a link into a topic works in both places. */
function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}
