/** The screen that `wirewatch status` shows. Pure: facts in, text out. */

import { counted, freeText, grouped } from '../counted.ts';
import { EXPORT_NAMES, type ExportName } from '../detection/content-type.ts';
import { isGettingFull } from '../health/disk.ts';
import { applyingText, NOT_RUNNING, pauseText } from '../operations/ingest-status.ts';
import { wrapped } from '../text-layout.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../time.ts';
import { reachText } from '../windows/reach.ts';
import type { Status } from './status.ts';

const FILES_SHOWN = 3;

/** @param width columns of the terminal: longer lines are wrapped */
export function statusText(status: Status, nowMs: number, width: number): string {
  const lines = [
    ['Wirewatch', applianceText(status)],
    ...ingestLines(status, nowMs),
    ['keys', keysText(status, nowMs)],
    ...status.disks.map((disk) => ['disk', diskText(disk)] as const),
    ['backup', backupText(status, nowMs)],
    ['verified', status.scrub === null ? 'not yet' : since(status.scrub.at, nowMs)],
  ] as const;
  const labels = Math.max(...lines.map(([label]) => label.length)) + 2;
  const hanging = (first: string, text: string) => wrapped(text, width, ' '.repeat(first.length), first);
  const files = status.not_applied.slice(0, FILES_SHOWN).flatMap(({ file, outcome, report }) => {
    const reason = report.reason ?? 'see: wirewatch ingest status';
    // Not repeated if an alert above gives it.
    const isShown = status.alerts.some(({ detail }) => detail.includes(reason));
    return hanging(`  ${outcome.padEnd(8)}`, isShown ? file : `${file}: ${reason}`);
  });
  return [
    ...lines.flatMap(([label, value]) => hanging(label.padEnd(labels), value)),
    '',
    `Alerts${status.running ? '' : ' (only those that follow from the database, because Wirewatch is not running)'}`,
    ...(status.alerts.length === 0
      ? ['  none']
      : status.alerts.flatMap((alert) =>
          hanging(`  ${alert.page_worthy ? 'NOW' : '   '}  `, alertText(alert)),
        )),
    ...(files.length === 0 ? [] : ['', 'Latest files that were not applied', ...files]),
  ]
    .join('\n')
    .concat('\n');
}

function applianceText({ running, url }: Status): string {
  if (!running) return NOT_RUNNING;
  return url === null ? 'running' : `running, listening on ${url}`;
}

function ingestLines(status: Status, nowMs: number): (readonly [string, string])[] {
  const { unreadable } = status.database;
  if (unreadable !== null) return [['ingest', `detections.db cannot be read: ${unreadable}`]];
  const { waiting, drop, applying } = status.ingest;
  return [
    ['ingest', pauseText(status.health)],
    ...EXPORT_NAMES.map((name) => [name, exportText(status.exports[name], nowMs)] as const),
    ['waiting', `${counted(waiting, 'file')} in ${drop}`],
    ...applying.map((file) => ['backfill', applyingText(file)] as const),
  ];
}

function exportText({ enabled, ...reach }: Status['exports'][ExportName], nowMs: number): string {
  if (!enabled) return 'switched off';
  return reachText(
    reach,
    reach.newest_done === null ? '' : `, ${age(nowMs - Date.parse(reach.newest_done))} ago`,
  );
}

function keysText({ keys }: Status, nowMs: number): string {
  const { active, used_in_last_day, last_used_at } = keys;
  const last = last_used_at === null ? 'no recorded use' : `last used ${since(last_used_at, nowMs)}`;
  return `${grouped(active)} active, ${grouped(used_in_last_day)} used in the last 24 hours; ${last}`;
}

function diskText({ folder, free_bytes, bytes }: Status['disks'][number]): string {
  const full = isGettingFull(free_bytes, bytes) ? ', getting full' : '';
  return `${freeText(free_bytes, bytes)} free${full} (${folder})`;
}

function backupText({ backup }: Status, nowMs: number): string {
  if (backup === null) return 'not scheduled; see the setting [backup] every_minutes';
  const { folder, newest_at } = backup;
  return newest_at === null ? `none yet in ${folder}` : `${since(newest_at, nowMs)} (${folder})`;
}

function alertText({ name, since: at, detail }: Status['alerts'][number]): string {
  return `${name}, since ${at}: ${detail}`;
}

/** A time with its age. */
function since(at: string, nowMs: number): string {
  return `${at}, ${age(nowMs - Date.parse(at))} ago`;
}

function age(ms: number): string {
  const units = [
    [DAY_MS, 'day'],
    [HOUR_MS, 'hour'],
    [MINUTE_MS, 'minute'],
  ] as const;
  const [unit, name] = units.find(([length]) => ms >= length) ?? [1000, 'second'];
  return counted(Math.max(0, Math.floor(ms / unit)), name);
}
