/** A topic of the manual as HTML. Only Markdown becomes markup: HTML in a topic is dropped. */
import { Marked } from 'marked';

const marked = new Marked({
  // An address in the text is an example, not a link.
  tokenizer: { url: () => undefined },
  renderer: {
    // Comments mark the generated parts.
    html: () => '',
    // The console serves no pictures.
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
});

/** A link to a topic, to a section of a topic, or to a section of the same topic. */
const INTERNAL = /^(?:([a-z-]+)\.md)?(?:#(.+))?$/;

/** @param topic the name of this one @returns markup without scripts, styles or external resources; links are the console's */
export function manualHtml(markdown: string, topic: string): string {
  return marked.parse(markdown, {
    async: false,
    walkTokens(token) {
      if (token.type !== 'link') return;
      token.href = String(token.href).replace(INTERNAL, (_, name = topic, section?: string) => {
        return `#/manual/${name}${section === undefined ? '' : `?section=${section}`}`;
      });
    },
  });
}

/** The anchors of code hosts, so that a link to a heading works in both places. */
function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}
