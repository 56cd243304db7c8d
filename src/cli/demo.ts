/** `wirewatch demo`: the appliance with a sample agency, sample keys and exports that keep coming. */
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { prepareAgency, type SampleKey } from '../demo/agency.ts';
import { SampleExports } from '../demo/exports.ts';
import { countFiles, readFigures } from '../demo/figures.ts';
import { openAccess } from '../history/access.ts';
import type { Operation } from '../history/format.ts';
import { bootIngestThread } from '../ingest/ingest-client.ts';
import { paced } from '../pace.ts';
import { type Database, openReader } from '../store/database.ts';
import { dataFolder } from '../store/folder.ts';
import { formatMs, HOUR_MS, SECOND_MS } from '../time.ts';
import { newestDone } from '../windows/ledger.ts';
import { operationOf } from './operation.ts';
import { addExamples, addSettingFlags, commonOptions, stateDefaults } from './options.ts';
import { print, progress, table } from './output.ts';
import { type Serving, serveAppliance, untilSignal } from './serving.ts';

const DROP_EVERY_MS = paced(20 * SECOND_MS);
const LOOK_EVERY_MS = 100;
/** How long the day may take before the calls are printed all the same. */
const DAY_TIMEOUT_MS = 120 * SECOND_MS;

export function register(command: Command, wholeProgram: () => Promise<Command>): void {
  command.action(async (_options, self: Command) => {
    const { json } = commonOptions(self);
    const serving = await serveAppliance(self, 'demo', {
      wholeProgram,
      ingestThread: bootIngestThread(),
    });
    // Who watches a demonstration wants to see what it does, not a line for every file of a day.
    if (serving.log.level === 'info') serving.log.level = 'warn';
    const stopping = new AbortController();
    const ended = untilSignal(serving, () => stopping.abort());
    await demonstrate(serving, json, stopping.signal, operationOf(self));
    await ended;
  });
  addSettingFlags(command);
  stateDefaults(command, { data: 'WIREWATCH_DATA, else ./wirewatch-demo' });
  addExamples(command, ['demo', 'demo --port 9090']);
}

async function demonstrate(
  { appliance, config }: Serving,
  json: boolean,
  signal: AbortSignal,
  operation: Operation,
): Promise<void> {
  const folder = dataFolder(config.dataFolder);
  await appliance.readable;
  const db = openReader(folder.detections);
  try {
    const access = openAccess(folder.root, { kind: 'demo', operation });
    const keys = prepareAgency(access, config.keys.prefix, Date.now());
    access.close();
    const exports = new SampleExports(appliance.drop, newestDone(db, 'imagewire'), Date.now());
    await ingestDay(db, exports, signal);
    if (signal.aborted) return;
    const shown = introduction(appliance.url, keys, db);
    print(shown, { json, text: () => introductionText(shown, appliance.drop, folder.root) });
    while (!signal.aborted) {
      await pause(DROP_EVERY_MS, signal);
      if (signal.aborted) return;
      const dropped = await exports.dropNext(Date.now());
      if (dropped !== null && !json)
        process.stdout.write(`${formatMs(Date.now())} dropped ${basename(dropped)}\n`);
    }
  } finally {
    db.close();
  }
}

async function ingestDay(db: Database, exports: SampleExports, signal: AbortSignal): Promise<void> {
  const before = countFiles(db);
  const files = await exports.dropDay(Date.now());
  const line = progress('ingesting a day of sample exports, files:');
  const untilMs = performance.now() + DAY_TIMEOUT_MS;
  while (countFiles(db) - before < files && performance.now() < untilMs && !signal.aborted) {
    line.update(countFiles(db) - before, files);
    await pause(LOOK_EVERY_MS, signal);
  }
  line.end();
}

interface Introduction {
  readonly url: string;
  readonly keys: readonly SampleKey[];
  readonly detections: number;
  readonly versions: number;
  /** Ready to paste. */
  readonly calls: { readonly changes: string; readonly detection: string };
}

function introduction(url: string, keys: readonly SampleKey[], db: Database): Introduction {
  const { detections, versions, newestId } = readFigures(db);
  const curl = `curl -s -H 'Authorization: Bearer ${keys[0]?.key}'`;
  return {
    url,
    keys,
    detections,
    versions,
    calls: {
      changes: `${curl} '${url}/v1/detections/changes?since=${formatMs(Date.now() - HOUR_MS)}&limit=3'`,
      detection: `${curl} '${url}/v1/detections/${newestId}'`,
    },
  };
}

function introductionText(shown: Introduction, drop: string, data: string): string {
  return `
Wirewatch is running with a sample agency: ${shown.url}
${shown.detections} detections in ${shown.versions} versions were read from a day of exports.

Keys (they work until the demonstration is started again):
${table(shown.keys, [
  { title: 'NAME', value: (key) => key.name },
  { title: 'READS', value: (key) => key.reads },
  { title: 'KEY', value: (key) => key.key },
])}

The change stream, from an hour ago; pass its next_cursor as cursor from then on:
  ${shown.calls.changes}

One detection:
  ${shown.calls.detection}

Every twenty seconds an export with new and changed detections is dropped into ${drop}
Everything is kept in ${data}; stop with Ctrl-C, start again to carry on.
`;
}

/** Waits, or until the signal. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}
