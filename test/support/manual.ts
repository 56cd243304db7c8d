/** Reads the manual's Markdown: topics, examples and tables. */
import assert from 'node:assert/strict';
import { markdownOf, TOPICS } from '../../src/manual/topics.ts';

/** @returns the Markdown of a topic */
export function topic(name: string): string {
  const found = TOPICS.find((one) => one.name === name);
  assert.ok(found, `the manual has no topic ${name}`);
  return markdownOf(found);
}

/** @returns a topic's text with single spaces and without backticks */
export const words = (name: string): string => topic(name).replaceAll(/\s+/g, ' ').replaceAll('`', '');

/** @returns the code after `<!-- example: NAME -->` */
export function example(of: string, name: string): string {
  const [, code] =
    new RegExp(`<!-- example: ${name} -->\\n\`\`\`[a-z]+\\n([\\s\\S]*?)\`\`\``).exec(topic(of)) ?? [];
  assert.ok(code, `${of} has no example ${name}`);
  return code;
}

/** The cells of all table rows in a text, without header rows. */
export function tableRows(text: string): string[][] {
  return [...text.matchAll(/^\|(?!-)(.*)\|$(?!\n\|-)/gm)].map(([, row = '']) =>
    row.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|')),
  );
}

/** Every metric that the manual names, with its labels. */
export function metricsOfManual(): { name: string; labels: string[] }[] {
  return tableRows(topic('monitoring'))
    .filter(([name = '']) => name.startsWith('`wirewatch_'))
    .map(([name = '', labels = '']) => ({
      name: name.replaceAll('`', ''),
      labels: labels.replaceAll('`', '').split(', ').filter(Boolean),
    }));
}
