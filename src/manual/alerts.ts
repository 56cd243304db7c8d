/** Manual, topic `alerts`: every alert, made from the program's own table, and the health endpoint. */
import { ALERTS } from '../health/alerts.ts';
import { fenced, page, paragraph, points, wrapped } from './text.ts';

export function alertsText(): string {
  const all = Object.entries(ALERTS);
  const isPageWorthy = ([, { page_worthy }]: (typeof all)[number]) => page_worthy;
  return page(
    'ALERTS',
    paragraph(`
      "wirewatch alert list" shows the alerts that are open: since when, what it is about, what to do. Each closes
      by itself when its cause is gone; there is nothing to acknowledge. The log has a line "alert opened" and
      "alert closed" for each. Where no appliance runs, the list says so first, with exit code 1: what only a
      running appliance could notice is not known then.`),
    'To be told',
    paragraph(`
      [alerts] command names a program and its arguments, which are run for each alert that opens or closes, as the
      user of the appliance. On its stdin is one line of JSON: "event" (opened or closed), and the members of
      "wirewatch alert list --json". A script that reads "name" and "page_worthy" from it and sends a mail is enough.
      No shell reads the setting, and no variable of the configuration (WIREWATCH_...) is passed on. One runs at a time,
      for 30 seconds at most; one that fails is a line of the log, and is not run again. After a restart, alerts that
      are still open are told again. A machine that is down tells nobody: let something outside of it ask GET
      /v1/health, too.`),
    fenced('toml', '[alerts]\ncommand = ["/usr/local/bin/wirewatch-alert", "--to", "desk@agency.example"]'),
    'These need someone now',
    paragraph('Health is 503 while one of them is open.'),
    ...all.filter(isPageWorthy).map(alertText),
    'These can wait for the morning',
    ...all.filter((one) => !isPageWorthy(one)).map(alertText),
    'Health',
    paragraph(`
      GET /v1/health (or HEAD) needs no key and has no rate limit: let a load balancer or a monitor ask it, as
      often as you like. 200: all is well. 503 with the same body, status "degraded": somebody is needed.`),
    points(
      'exports.newswire.newest_done and exports.imagewire.newest_done: the end of the newest finished window, from which as_of is made; null when there is none, or the export is switched off.',
      'alerts.open counts the open alerts, alerts.page_worthy those of them that need someone now; alerts.paused is 1 during a pause.',
      'It is 503 while an alert needs someone now, and while the newest finished window of an export that is switched on ended more than an hour ago, or it has none: a new installation is degraded until its first files have come. An agency without photos switches that export off: [exports.imagewire] enabled = false.',
      'During a pause the age of windows is not judged; a pause alone is 200.',
    ),
    'Windows that do not come',
    points(
      'An export is expected to bring every window from the start of the first one that finished. A window that ended more than 90 days before it was read does not count: it is history, which belongs into a backfill. "wirewatch window expect newswire 20261121T1010Z" sets another first window: earlier ones are no longer missing. A window without detections needs its (empty) file, too.',
      'A window is due ten minutes after it ends. An hour later the alert "late windows" opens for it, if a later window of its export was read. A day after that it is missing; this is checked once a day, at every start (so after a restore, too), and once the clock has run evenly for an hour after it was corrected. A window is not missing while its file lies in the drop folder, as it does during a pause. Clients see missing windows in data_gaps.',
      'When the file of a missing window comes, it is read at once.',
      'After 30 days missing, a window is abandoned. A file that comes then is held: "wirewatch window accept newswire 20261121T1010Z" reads the newest one.',
      'An export that is switched off has no missing windows. When it is switched on again, those of the time between are missed.',
    ),
  );
}

type Kind = (typeof ALERTS)[keyof typeof ALERTS];

function alertText([name, { opens, closes, what_to_do }]: [string, Kind]): string {
  return [
    name,
    wrapped(`Opens: ${opens}.`, '    '),
    wrapped(`Closes: ${closes}.`, '    '),
    wrapped(what_to_do, '    '),
  ].join('\n');
}
