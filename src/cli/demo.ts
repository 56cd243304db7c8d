/**
 * `wirewatch demo`: a lab whose clock runs, with a sample agency that exports every twenty seconds. It prints keys and
 * ready-to-run calls.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { rightsOf } from '../auth/keys.ts';
import { now } from '../clock.ts';
import { paced } from '../pace.ts';
import { pasted } from '../setup/shell.ts';
import { documentTable } from '../text-layout.ts';
import { DAY_MS, formatMs, SECOND_MS, WINDOW_MS } from '../time.ts';
import { SAMPLE_SUBSCRIPTIONS } from '../tools/generate/rows.ts';
import { newestEndedWindow } from '../tools/lab/feed.ts';
import { defineCommand } from './command.ts';
import { type LabKey, startLab, unlessStopped } from './lab.ts';
import { SETTING_OPTIONS } from './options.ts';
import { print } from './output.ts';
import { operateHere, type Serving } from './serving.ts';

const DROP_EVERY_MS = paced(20 * SECOND_MS);
/** In both files of a window together. */
const ROWS_A_WINDOW = 40;
const ROWS_A_DROP = 4;
const SCORES = 99;

const [FIRST, SECOND] = SAMPLE_SUBSCRIPTIONS;
export const register = defineCommand({
  options: SETTING_OPTIONS,
  examples: ['demo', 'demo --port 9090'],
  async run(_values, command) {
    const beganMs = Date.now();
    const started = await startLab(command, 'demo', {
      seed: 'demo',
      keys: [
        {
          name: 'demo: everything',
          subscriptions: [FIRST, SECOND].map(({ id }) => ({ id, content_types: null })),
        },
        { name: 'demo: overseas stories', subscriptions: [{ id: SECOND.id, content_types: ['text'] }] },
      ],
      fill: (feed) => feed.dropDay(ROWS_A_WINDOW),
    });
    if (started === null) return null;
    const { serving, keys, stopping: signal, ended } = started;
    const introduced = async () => {
      const drop = createDrops(serving);
      const shown = await introduction(serving, keys, beganMs, await drop());
      print(command, { value: shown, text: introductionText(shown, serving) });
      serving.showLog();
      for (;;) {
        await sleep(DROP_EVERY_MS, undefined, { signal });
        await drop().catch((err: unknown) => {
          if (!signal.aborted) serving.log.error({ err }, 'a step of the scenario failed');
        });
      }
    };
    // A drop waits until it is read, which may be never: ingest can be paused.
    await unlessStopped(signal, [introduced(), ended]);
    await ended;
    return null;
  },
});

/**
 * What the sample agency exports from now on: operations of the lab, as a scenario has them.
 * @returns drops the windows that have ended, then a few more rows of the newest: of each file, one row gets another
 *   score, and its id is returned, that of a story first
 */
function createDrops({ appliance }: Serving): () => Promise<string[]> {
  let droppedMs = newestEndedWindow(now());
  let score = 0;
  return async () => {
    const newestMs = newestEndedWindow(now());
    // Several, if the machine slept or the clock was moved.
    droppedMs = Math.max(droppedMs, newestMs - DAY_MS);
    for (; droppedMs < newestMs; droppedMs += WINDOW_MS) {
      const age = `${newestMs - droppedMs - WINDOW_MS}ms`;
      await operateHere(appliance, 'lab-drop', { rows: ROWS_A_WINDOW, age });
    }
    const { files } = await operateHere<{ files: { ids: string[] }[] }>(appliance, 'lab-drop', {
      rows: ROWS_A_DROP,
    });
    score = (score + 7) % SCORES;
    const changed = files.flatMap(({ ids }) => ids.slice(0, 1));
    for (const id of changed) await operateHere(appliance, 'lab-correct', { id, score });
    return changed.sort().reverse();
  };
}

export type Introduction = Awaited<ReturnType<typeof introduction>>;

async function introduction(
  { appliance }: Serving,
  own: readonly LabKey[],
  sinceMs: number,
  [story = '', photo = '']: readonly string[],
) {
  const { url } = appliance;
  const { url: link } = await operateHere<{ url: string }>(appliance, 'console');
  const keys = own.map(({ id, key, name, subscriptions }) => {
    return { id, name, reads: rightsOf(subscriptions).join(','), key };
  });
  const key = keys[0]?.key ?? '';
  const curl = `curl -s -H 'Authorization: Bearer ${key}'`;
  const detection = `${url}/v1/detections/${story}`;
  const image = await ask<{ source: { image_url: string } }>(`${url}/v1/detections/${photo}`, key);
  return {
    console: link,
    url,
    keys,
    calls: {
      health: `curl -s '${url}/v1/health'`,
      changes: `${curl} '${url}/v1/detections/changes?since=${formatMs(sinceMs)}&limit=3'`,
      detection: `${curl} '${detection}'`,
    },
    /** The answer of the API; null if it cannot be requested from here. */
    detection: await ask<{ id: string }>(detection, key),
    photo: image?.source.image_url ?? null,
  };
}

/** @returns the answer's body; null if there is none, as with a certificate that this process does not trust */
async function ask<Answer>(address: string, key: string): Promise<Answer | null> {
  const headers = { authorization: `Bearer ${key}` };
  const answer = await fetch(address, { headers }).catch(() => null);
  return answer?.ok === true ? ((await answer.json()) as Answer) : null;
}

function introductionText(shown: Introduction, { config }: Serving): string {
  const { console: link, url, keys, calls, detection, photo } = shown;
  return `
Wirewatch is running with a sample agency: ${url}
It has read a day of sample exports.

Console (the link works once, within ten minutes; for another, run: wirewatch console --data ${pasted(config.dataFolder)}):
  ${link}

Keys (valid until you start the demo again):
${documentTable(keys, ['name', 'reads', 'key'])}

A detection:
${JSON.stringify(detection, null, 2).replace(/^/gm, '  ')}

Ready-to-run commands (add "| jq" or "| python3 -m json.tool" to format the answers like this):

The change stream: every new or changed detection since this demo started, in order of arrival.
From then on, pass next_cursor of the last answer as cursor.
  ${calls.changes}

One detection:
  ${calls.detection}

Health:
  ${calls.health}

A photo to open in your browser:
  ${photo}

Every 20 seconds, export files with new and changed detections are dropped into
  ${config.ingest.drop}
The log lines below show each file and each request. All data is in
  ${config.dataFolder}
Press Ctrl-C to stop. The next start begins from scratch.
`;
}
