/** Ingest of CSV in another shape, against CSV in our own form with the same rows. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Bench, median, type Row, SUBSCRIPTIONS } from './common.ts';
import { dropped, prepareAccess } from './ingest.ts';
import { command, startAppliance } from './program.ts';

/** Semicolons, Windows-1252, other names, local times, decimal commas, other values. */
const SETTINGS = {
  WIREWATCH_EXPORTS_NEWSWIRE_CSV: '{ delimiter = ";", encoding = "windows-1252" }',
  WIREWATCH_EXPORTS_NEWSWIRE_TIME_FORMAT: 'DD.MM.YYYY HH:mm:ss',
  WIREWATCH_EXPORTS_NEWSWIRE_TIME_ZONE: 'Europe/Berlin',
  WIREWATCH_EXPORTS_NEWSWIRE_DECIMAL: ',',
  WIREWATCH_EXPORTS_NEWSWIRE_VALUES: '{ article_print = { J = true, N = false } }',
};

export async function mapped(bench: Bench): Promise<Row> {
  const own = join(bench.folder, 'own');
  command(
    ...['generate', '--out', own, '--export', 'newswire', '--rows', `${bench.rows}`, '--form', 'csv'],
    ...['--start', '20260615T1000Z', '--subscriptions', SUBSCRIPTIONS.join(',')],
  );
  const [file = ''] = readdirSync(own);
  const theirs = join(bench.folder, 'theirs');
  mkdirSync(theirs);
  const columns = inAnotherShape(join(own, file), join(theirs, file));
  const settings = { ...SETTINGS, WIREWATCH_EXPORTS_NEWSWIRE_COLUMNS: columns };
  const rates = { own: [] as number[], theirs: [] as number[] };
  for (let round = 0; round < bench.rounds; round += 1) {
    rates.own.push(await rate(bench, own, file, {}));
    rates.theirs.push(await rate(bench, theirs, file, settings));
  }
  return {
    what: 'ingest of CSV in another shape, by settings',
    against: 'CSV in our own form, same rows',
    unit: 'rows/s',
    appliance: median(rates.theirs),
    limit: median(rates.own),
    reach: 0.8,
  };
}

/** @returns rows per second */
async function rate(
  bench: Bench,
  folder: string,
  file: string,
  settings: Readonly<Record<string, string>>,
): Promise<number> {
  rmSync(bench.data, { recursive: true, force: true });
  prepareAccess(bench.data, SUBSCRIPTIONS);
  const appliance = await startAppliance(bench.data, undefined, settings);
  const seconds = await dropped(join(bench.data, 'drop'), folder, file);
  await appliance.stop();
  return bench.rows / seconds;
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
