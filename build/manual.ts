/**
 * `npm run manual`: writes the parts of the manual that the code knows better into src/manual/*.md, and
 * config/wirewatch.toml.
 *
 * Such a part stands between `<!-- made by npm run manual: NAME -->` and `<!-- end -->`. A test holds what is there
 * against what would be written.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { TSchema } from '@sinclair/typebox';
import type { Command, Option } from 'commander';
import { createProgram } from '../src/cli/program.ts';
import { annotatedConfig } from '../src/config/annotated.ts';
import { expectation, HOST_EXPECTED, PATH_EXPECTED, SETTINGS } from '../src/config/schema.ts';
import { EXPORT_NAMES } from '../src/detection/content-type.ts';
import { type ColumnKind, columnOf, FIELDS } from '../src/detection/fields.ts';
import { type ColumnName, EXPORT_COLUMNS } from '../src/exports/columns.ts';
import { PARTS } from '../src/manual/topics.ts';
import { PROBLEMS } from '../src/problem-titles.ts';

import { MEASURED, type MeasuredFigure, shown } from '../test/bench/measured.ts';

const FOLDER = path.join(import.meta.dirname, '..', 'src', 'manual');
/** What the description of a detection's field does not say to somebody who writes exports. */
const COLUMN_NOTES: Partial<Record<ColumnName, string>> = {
  first_detected_at: 'The earliest that was ever given for a detection counts.',
  last_scored_at: 'Decides which of two rows is newer. It is not compared with `first_detected_at`.',
  first_detected_estimated:
    'Default: `false`, in a backfill `true`. It belongs to the earliest `first_detected_at`; at the same instant, `false` wins.',
  exported_at: 'Default: when the row was read.',
  source_image_url:
    'Default: a signed address at which Wirewatch serves the photo from the folder `photos.folder`.',
  article_url: 'Give it for print articles, too.',
  article_domain:
    'Reduced to the registered domain, in lower case and punycode. Default: taken from `article_url`.',
  article_publisher_id: 'Without it the detection has no publisher, and `article_publisher_name` is ignored.',
  article_publisher_name: 'White space around it is removed.',
  article_print: 'Default: `false`.',
};
const MADE = /(<!-- made by npm run manual: ([a-z-]+) -->\n)[\s\S]*?(?=<!-- end -->)/g;

/** @returns every file of the manual, by its name, as it should be */
export async function madeManual(): Promise<Map<string, string>> {
  const parts = await madeParts();
  const names = readdirSync(FOLDER).filter((name) => name.endsWith('.md'));
  return new Map(names.map((name) => [name, withParts(name, parts)]));
}

function withParts(name: string, parts: ReadonlyMap<string, string>): string {
  return readFileSync(path.join(FOLDER, name), 'utf8').replace(MADE, (_, head: string, part: string) => {
    const text = parts.get(part);
    if (text === undefined)
      throw new Error(`${name}: nothing makes a part ${part}. Parts: ${[...parts.keys()].join(', ')}`);
    return `${head}\n${text}\n\n`;
  });
}

async function madeParts(): Promise<Map<string, string>> {
  const program = await createProgram();
  return new Map([
    ['topics', topicLists()],
    ['commands', commandsText(program)],
    ['common-options', commonOptions(program)],
    ['settings', settingsTable()],
    ['columns', columnsTable()],
    ['errors', errorsTable()],
    ...(['earlier', 'growth', 'peers', 'copy'] as const).map(
      (group) => [`measured-${group}`, measured(group)] as const,
    ),
  ]);
}

function topicLists(): string {
  const topic = ({ name, title }: { name: string; title: string }) => `- [${name}](${name}.md): ${title}`;
  return PARTS.map(({ title, topics }) => `## ${title}\n\n${topics.map(topic).join('\n')}`).join('\n\n');
}

interface Described {
  readonly name: string;
  readonly command: Command;
}

/** Every command that does something by itself. */
function commandsBelow(group: Command, name: string): Described[] {
  return group.commands.flatMap((command) => {
    const full = name === '' ? command.name() : `${name} ${command.name()}`;
    const below = commandsBelow(command, full);
    // A group with options of its own does something by itself, too.
    return below.length > 0 && command.options.length === 0 ? below : [{ name: full, command }, ...below];
  });
}

/** The commands that take each option, by its description. */
function takersOf(program: Command): Map<string, string[]> {
  const takers = new Map<string, string[]>();
  for (const { name, command } of commandsBelow(program, ''))
    for (const one of command.options)
      takers.set(optionText(one), [...(takers.get(optionText(one)) ?? []), name]);
  return takers;
}

/** An option of this many commands is described once, above all of them. */
const SHARED_BY = 4;

function commonOptions(program: Command): string {
  const texts = [...takersOf(program)].filter(([, names]) => names.length >= SHARED_BY).map(([text]) => text);
  const shared = [...Map.groupBy(texts, (text) => text.split(':', 1)[0])].map(([flags, same]) =>
    [flags, same.map((text) => text.slice(text.indexOf(': ') + 2)).join('; for a command beside it: ')].join(
      ': ',
    ),
  );
  const list = (lines: readonly string[]) => lines.map((line) => `- ${line}`).join('\n');
  const common = list(program.options.map(optionText));
  return `${common}\n\nSeveral commands take these, and are listed with their names alone:\n\n${list(shared)}`;
}

/** An option is described where it comes first, and named where it comes again. */
function commandsText(program: Command): string {
  const takers = takersOf(program);
  /** What the options of a command that adds something say; one that sets its members requires none. */
  const described = (one: Option, name: string) => {
    const text = optionText(one);
    if (!name.endsWith(' set')) return text;
    return (
      [`${text} (required)`, text.replace(/\)$/, '; required)')].find((added) => takers.has(added)) ?? text
    );
  };
  return commandsBelow(program, '')
    .map(({ name, command }) => {
      const values = command.registeredArguments
        .map((one) => ({ name: one.name() + (one.variadic ? '...' : ''), required: one.required }))
        .map((one) => (one.required ? `<${one.name}>` : `[${one.name}]`));
      const lines = command.options.map((one) => {
        const names = takers.get(described(one, name)) ?? [];
        if (names.length >= SHARED_BY) return `\`${one.long}\``;
        const first = names.find((other) => !other.endsWith(' set')) ?? name;
        return first === name ? optionText(one) : `\`${one.long}\`: as for \`${first}\``;
      });
      const parts = [
        `## \`${[name, ...values].join(' ')}\``,
        sentence(command.description()),
        together(lines),
      ];
      return parts.filter((part) => part !== '').join('\n\n');
    })
    .join('\n\n');
}

/** One list item for names without a description, and one for those that are as for one other command. */
function together(lines: readonly string[]): string {
  const groups = Map.groupBy(
    lines,
    (line) => /^`--[a-z-]+`(?:: (as for .*))?$/.exec(line)?.[1] ?? (line.includes(': ') ? line : ''),
  );
  return [...groups]
    .map(([end, group]) => {
      const names = group.map((line) => line.replace(/: as for .*/, '')).join(', ');
      return `- ${end.startsWith('as for ') ? `${names}: ${end}` : names}`;
    })
    .join('\n');
}

function optionText({
  flags,
  description,
  argChoices,
  defaultValue,
  defaultValueDescription,
  mandatory,
}: Option): string {
  const given: unknown = defaultValueDescription ?? defaultValue;
  const facts = [
    ...(argChoices === undefined ? [] : [`one of ${argChoices.join(', ')}`]),
    ...(given === undefined ? [] : [`default: ${given}`]),
    ...(mandatory ? ['required'] : []),
  ];
  // Of a long list of names, help has all.
  const short = description.replace(/: (\w+)(?:, [a-z]\w+){7,}/i, ', such as $1');
  return `\`${flags}\`: ${short}${facts.length === 0 ? '' : ` (${facts.join('; ')})`}`;
}

function errorsTable(): string {
  const rows = Object.entries(PROBLEMS).map(([code, { status, action }]) => [
    `${status}`,
    `\`${code}\``,
    action,
  ]);
  return table(['Status', 'Code', 'What a client does'], rows);
}

/** What the rules above the table say of all settings, or the description of one. */
const SAID_ABOVE = ['true or false', 'text', PATH_EXPECTED, HOST_EXPECTED];

/** What a value must be, where the description does not say it, in fewer words than an error message. */
function expectedText(schema: TSchema, description: string): string[] {
  const expected = expectation(schema).replace(/^a list in which each item is (?:an? )?/, 'Each: ');
  const choices = [...expected.matchAll(/"[^"]+"/g)].map(([choice]) => choice);
  const isSaid = expected.startsWith('one of ') && choices.every((choice) => description.includes(choice));
  if (SAID_ABOVE.includes(expected) || isSaid) return [];
  const short = expected
    .replace(/^Each: text$/, '')
    .replace(/^(?:a whole number|a number) (?=from|above)/, '')
    .replace(/^empty, (?:or )?(?:an? |the )?/, '')
    .replace(/^an? (?=table|time|name)/, '')
    .replace(/, or nothing$/, '');
  return short === '' ? [] : [`${short.charAt(0).toUpperCase()}${short.slice(1)}.`];
}

/** The two exports have the same settings. */
const [ONE_EXPORT, ...OTHER_EXPORTS] = EXPORT_NAMES;

function settingsTable(): string {
  const isOther = (path: string) => OTHER_EXPORTS.some((name) => path.startsWith(`exports.${name}.`));
  const rows = SETTINGS.filter((setting) => !isOther(setting.path)).map((setting) => {
    const { path, description, schema, flag } = setting;
    const facts = [
      description.replace(`the ${ONE_EXPORT} export`, 'the export'),
      // Your own exports has their forms.
      ...(path.startsWith('exports.') ? [] : expectedText(schema, description)),
      ...(flag === null ? [] : [`Flag: \`${flag}\`.`]),
    ];
    const name = path.replace(`exports.${ONE_EXPORT}.`, 'exports.EXPORT.');
    return [`\`${name}\``, `\`${JSON.stringify(schema.default)}\``, coded(facts.join(' '))];
  });
  return table(['Setting', 'Default', 'Meaning'], rows);
}

/** Marks as code what Markdown would take for emphasis. */
function coded(text: string): string {
  return text.replaceAll('"*"', '`"*"`');
}

function columnsTable(): string {
  const descriptions = new Map(FIELDS.map((field) => [columnOf(field.path), field.description]));
  const rows = EXPORT_COLUMNS.map(({ name, required, exports, kind }) => [
    `\`${name}\``,
    required ? 'yes' : 'no',
    exports.length === EXPORT_NAMES.length ? 'both' : exports.join(', '),
    `${kindText(kind)}. ${descriptions.get(name) ?? ''} ${COLUMN_NOTES[name] ?? ''}`.trim(),
  ]);
  return table(['Column', 'Required', 'Export', 'Type and meaning'], rows);
}

function kindText(kind: ColumnKind): string {
  switch (kind.type) {
    case 'integer':
      return kind.least === 0 ? 'Integer' : `Integer from ${kind.least}`;
    case 'score':
      return 'Number, 0 to 100 in newswire, 0 to 99 in imagewire';
    case 'boolean':
      return 'Boolean';
    case 'address':
      return 'Address';
    case 'string':
      return kind.characters_max === undefined ? 'String' : `String, up to ${kind.characters_max} characters`;
    case 'timestamp':
      return {
        none: 'Timestamp',
        latest: 'Timestamp, not after the latest',
        both: 'Timestamp, from the earliest to the latest',
      }[kind.bound];
  }
}

/** A table for each history that the figures name, as in `6 million rows: page of one stream`. */
function measured(name: keyof typeof MEASURED): string {
  const { how, commit, day, machine, figures } = MEASURED[name];
  const hasOther = figures.some(({ before }) => before !== null);
  const [, ...columns] = hasOther ? ['What', 'Measured', 'Beside', 'Ratio'] : ['What', 'Measured'];
  const tables = [...Map.groupBy(figures, ({ what }) => /^([^:]+): /.exec(what)?.[1] ?? 'What')].map(
    ([head, group]) => {
      const rows = group.map((figure) =>
        measuredRow({ ...figure, what: figure.what.replace(`${head}: `, '') }, hasOther),
      );
      return table([head, ...columns], rows);
    },
  );
  return `\`${how}\`, ${day}, commit ${commit}, ${machine}:\n\n${tables.join('\n\n')}`;
}

function measuredRow({ what, unit, now, before, ratio }: MeasuredFigure, hasOther: boolean): string[] {
  const row = [what, `${shown(now)} ${unit}`];
  return hasOther
    ? [...row, before === null ? '' : shown(before), ratio === null ? '' : ratio.toFixed(2)]
    : row;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n');
}

/** A name such as detections.db keeps its small letter. */
function sentence(text: string): string {
  const begun = text.replace(/^[a-z]+(?=[ ,])/, (word) => word.charAt(0).toUpperCase() + word.slice(1));
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

if (process.argv[1] === import.meta.filename) {
  for (const [name, text] of await madeManual()) writeFileSync(path.join(FOLDER, name), text);
  writeFileSync(path.join(FOLDER, '..', '..', 'config', 'wirewatch.toml'), annotatedConfig());
}
