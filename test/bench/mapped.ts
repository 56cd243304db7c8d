/** Ingest of CSV in another shape, against CSV in our own form with the same rows. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type Bench, type Figure, inTurn, rate, SUBSCRIPTIONS } from './common.ts';
import { dropped, generated, prepareAccess } from './ingest.ts';
import { startAppliance } from './program.ts';

/** Semicolons, Windows-1252, other names, local times, decimal commas, other values. */
const SETTINGS = {
  WIREWATCH_EXPORTS_NEWSWIRE_CSV: '{ delimiter = ";", encoding = "windows-1252" }',
  WIREWATCH_EXPORTS_NEWSWIRE_TIME_FORMAT: 'DD.MM.YYYY HH:mm:ss',
  WIREWATCH_EXPORTS_NEWSWIRE_TIME_ZONE: 'Europe/Berlin',
  WIREWATCH_EXPORTS_NEWSWIRE_DECIMAL: ',',
  WIREWATCH_EXPORTS_NEWSWIRE_VALUES: '{ article_print = { J = true, N = false } }',
};

export async function mapped({ folder, rows, rounds }: Bench): Promise<Figure[]> {
  const asCsv = ['--form', 'csv', '--start', '20260615T1000Z'];
  const own = generated(join(folder, 'own'), rows, SUBSCRIPTIONS, ...asCsv);
  const theirs = join(folder, 'theirs', basename(own));
  mkdirSync(join(folder, 'theirs'));
  const settings = { ...SETTINGS, WIREWATCH_EXPORTS_NEWSWIRE_COLUMNS: inAnotherShape(own, theirs) };
  const sides = [
    { file: own, settings: {} },
    { file: theirs, settings },
  ];
  const rates = await inTurn(sides, { rounds, warmUps: 0 }, async ({ file, ...options }) => {
    const data = join(folder, 'data');
    rmSync(data, { recursive: true, force: true });
    prepareAccess(data);
    await using _ = await startAppliance(data, options);
    return rows / (await dropped(join(data, 'drop'), file));
  });
  return [rate('ingest of CSV in another shape, by settings: 0.8 or more', 'rows/s', rates)];
}

/** @returns the setting `columns` */
function inAnotherShape(from: string, to: string): string {
  const [header = '', ...lines] = readFileSync(from, 'utf8').split('\r\n');
  const names = header.split(',');
  const clock = (time: string) => {
    // Berlin in June.
    const local = new Date(Date.parse(time) + 7_200_000).toISOString();
    return `${local.slice(8, 10)}.${local.slice(5, 7)}.${local.slice(0, 4)} ${local.slice(11, 19)}`;
  };
  const record = (line: string) =>
    [...line.matchAll(/(?:^|,)("(?:[^"]|"")*"|[^,]*)/g)]
      .map(([, field = ''], at) => {
        const name = names[at] ?? '';
        if (/^\d{4}-\d\d-\d\dT.*Z$/.test(field)) return clock(field);
        if (name === 'strength_score') return field.replace('.', ',');
        if (name === 'article_print') return field === 'true' ? 'J' : field === 'false' ? 'N' : field;
        return field.includes(';') && !field.startsWith('"') ? `"${field}"` : field;
      })
      .join(';');
  const text = [names.map((name) => `x_${name}`).join(';'), ...lines.map(record)].join('\r\n');
  // What the encoding lacks becomes a question mark: the rows stay about as long.
  writeFileSync(to, Buffer.from(text.replaceAll(/[^\0-\x7f\xa0-\xff]/g, '?'), 'latin1'));
  return `{ ${names.map((name) => `${name} = "x_${name}"`).join(', ')} }`;
}
