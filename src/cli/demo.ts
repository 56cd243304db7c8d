/** `wirewatch demo`: runs the appliance with a sample agency, sample keys and a steady flow of export files. */

import { setTimeout as sleep } from 'node:timers/promises';
import { openAccess } from '../auth/open-access.ts';
import { OTHER_ADDRESS } from '../config/listening.ts';
import { counted } from '../counted.ts';
import { prepareAgency, type SampleKey } from '../demo/agency.ts';
import { newestEndedWindow, SampleExports } from '../demo/exports.ts';
import { countFiles, readFigures } from '../demo/figures.ts';
import { EXPORT_NAMES } from '../detection/content-type.ts';
import type { Operation } from '../history/format.ts';
import { bootIngestThread } from '../ingest/threads/ingest-client.ts';
import { paced } from '../pace.ts';
import { Refused } from '../refused.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { dataFolder } from '../store/folder.ts';
import { table } from '../text-layout.ts';
import { formatMs, SECOND_MS } from '../time.ts';
import { newestDone } from '../windows/ledger.ts';
import { actorOfProcess } from './actor.ts';
import { defineCommand } from './command.ts';
import { commonOptions, SETTING_OPTIONS } from './options.ts';
import { createProgress, print } from './output.ts';
import { consoleLink, type Serving, serveAppliance, untilSignal } from './serving.ts';

const DROP_EVERY_MS = paced(20 * SECOND_MS);
const POLL_EVERY_MS = 100;
/** How long reading the day may take before the commands are printed anyway. */
const DAY_TIMEOUT_MS = 120 * SECOND_MS;

export const register = defineCommand({
  options: SETTING_OPTIONS,
  ownHelp: {
    data: '$WIREWATCH_DATA, else ./wirewatch-demo',
    json: 'print the sample keys and the commands as JSON',
  },
  examples: ['demo', 'demo --port 9090'],
  async run(_values, self) {
    const serving = await serveAppliance(self, 'demo', { ingestThread: bootIngestThread() }).catch(
      (error: unknown) => {
        throw advisedForNpm(error);
      },
    );
    const stopping = new AbortController();
    const ended = untilSignal(serving, () => stopping.abort());
    await demonstrate(serving, commonOptions(self).json, stopping.signal, {
      kind: 'command',
      command: 'demo',
      ...actorOfProcess(),
    });
    await ended;
    return null;
  },
});

/** Under `npm start`, options reach the program only behind `--`. */
function advisedForNpm(error: unknown): unknown {
  if (!(error instanceof Refused) || process.env.npm_lifecycle_event !== 'start') return error;
  const advice = 'Choose another port: npm start -- --port 8081';
  return new Refused(error.code, error.message.replace(OTHER_ADDRESS, advice), { cause: error });
}

async function demonstrate(
  { appliance, config, showLog }: Serving,
  json: boolean,
  signal: AbortSignal,
  operation: Operation,
): Promise<void> {
  const folder = dataFolder(config.dataFolder);
  const link = await consoleLink(appliance);
  if (!json) process.stdout.write(consoleText(link, folder.root));
  await appliance.readable;
  using db = openDatabase(folder.detections, 'read');
  const beganMs = Date.now();
  await expectFromNow(appliance, beganMs, signal);
  const keys = prepare(folder.root, { prefix: config.keys.prefix, operation }, beganMs);
  const folders = { drop: appliance.drop, photos: config.photos.folder };
  const exports = new SampleExports(folders, doneByBoth(db), beganMs);
  await ingestDay(db, exports, signal);
  if (signal.aborted) return;
  const shown = { console: link, ...(await introduction(appliance.url, keys, db, beganMs)) };
  print(shown, { json, text: () => introductionText(shown, appliance.drop, folder.root) });
  showLog();
  while (!signal.aborted) {
    await pause(DROP_EVERY_MS, signal);
    if (signal.aborted) return;
    if ((await exports.dropNewest(Date.now())) > 0) await exports.dropOthers();
    else await exports.dropChanges(Date.now());
  }
}

function consoleText(link: string, data: string): string {
  return `
Console (the link works once, within ten minutes):
  ${link}
For another link, run: wirewatch console --data ${data}

`;
}

/** If the last demonstration ended long ago, the windows since then are not missing. */
async function expectFromNow(
  { ask }: Serving['appliance'],
  nowMs: number,
  signal: AbortSignal,
): Promise<void> {
  const window_start = newestEndedWindow(nowMs);
  for (const name of EXPORT_NAMES) {
    const outcome = await ask({ kind: 'expect', export: name, window_start }, () => {});
    // A stop leaves it undone.
    if (signal.aborted) return;
    if (!outcome.ok) throw new Refused('failed', outcome.reason);
  }
}

function prepare(
  root: string,
  { prefix, operation }: { readonly prefix: string; readonly operation: Operation },
  nowMs: number,
): SampleKey[] {
  using access = openAccess(root, { kind: 'demo', operation });
  return prepareAgency(access, prefix, nowMs);
}

/** The end of the newest window that both exports have; null if one has none. */
function doneByBoth(db: Database): number | null {
  const ends = EXPORT_NAMES.map((name) => newestDone(db, name) ?? 0);
  return Math.min(...ends) || null;
}

/** The newest window first: with it, Wirewatch is up to date. Then the day before, and changes. */
async function ingestDay(db: Database, exports: SampleExports, signal: AbortSignal): Promise<void> {
  using progress = createProgress();
  const before = countFiles(db);
  const untilMs = performance.now() + DAY_TIMEOUT_MS;
  let files = 0;
  const steps = [
    () => exports.dropNewest(Date.now()),
    () => exports.dropOthers(),
    async () => (await exports.dropChanges(Date.now())) + (await exports.dropChanges(Date.now())),
  ];
  for (const step of steps) {
    files += await step();
    while (countFiles(db) - before < files && performance.now() < untilMs && !signal.aborted) {
      progress.update('reading a day of sample exports, files:', countFiles(db) - before, files);
      await pause(POLL_EVERY_MS, signal);
    }
  }
}

interface Photos {
  readonly data: readonly { readonly source: { readonly image_url: string } }[];
}

type Introduction = Awaited<ReturnType<typeof introduction>>;

async function introduction(url: string, keys: readonly SampleKey[], db: Database, sinceMs: number) {
  const { detections, versions, newestId } = readFigures(db);
  const key = keys[0]?.key ?? '';
  const curl = `curl -s -H 'Authorization: Bearer ${key}'`;
  const changes = `${url}/v1/detections/changes?since=${formatMs(sinceMs)}`;
  const detection = `${url}/v1/detections/${newestId}`;
  const photos = await ask<Photos>(`${changes}&content_type=image&limit=1`, key);
  return {
    url,
    keys,
    detections,
    versions,
    calls: {
      health: `curl -s '${url}/v1/health'`,
      changes: `${curl} '${changes}&limit=3'`,
      detection: `${curl} '${detection}'`,
    },
    /** As the API returns it; null if it cannot be requested from here. */
    detection: await ask(detection, key),
    photo: photos?.data[0]?.source.image_url ?? null,
  };
}

/** @returns the answer's body; null if there is none, as with a certificate that this process does not trust */
async function ask<Answer>(address: string, key: string): Promise<Answer | null> {
  try {
    const answer = await fetch(address, { headers: { authorization: `Bearer ${key}` } });
    return answer.ok ? ((await answer.json()) as Answer) : null;
  } catch {
    return null;
  }
}

function introductionText(shown: Introduction, drop: string, data: string): string {
  const { calls, detection, photo } = shown;
  return `
Wirewatch is running with a sample agency: ${shown.url}
It has read a day of sample exports: ${counted(shown.detections, 'detection')} in ${counted(shown.versions, 'version')}.

Keys (valid until you start the demo again; keys that you create yourself stay valid):
${table(shown.keys, [
  { title: 'NAME', value: (key) => key.name },
  { title: 'READS', value: (key) => key.reads },
  { title: 'KEY', value: (key) => key.key },
])}

${
  detection === null
    ? ''
    : `A detection:
${indented(JSON.stringify(detection, null, 2))}

`
}Ready-to-run commands (add "| jq" or "| python3 -m json.tool" to format the answers like this):

The change stream: every new or changed detection since this demo started, in order of arrival.
From then on, pass next_cursor of the last answer as cursor.
  ${calls.changes}

One detection:
  ${calls.detection}

Health:
  ${calls.health}
${
  photo === null
    ? ''
    : `
A photo to open in your browser:
  ${photo}
`
}
Every 20 seconds, an export file with new and changed detections is dropped into
  ${drop}
The log lines below show each file and each request. All data is in
  ${data}
Press Ctrl-C to stop; start the demo again to continue with the same data.
`;
}

function indented(text: string): string {
  return text.replace(/^/gm, '  ');
}

/** Ends early at the signal. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}
