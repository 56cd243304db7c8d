/** `wirewatch alert`: what is not as it should be, and what to do about it. */
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { Config } from '../config/load.ts';
import { EXPORT_NAMES } from '../detection/content-type.ts';
import { readAlertFile } from '../health/alert-file.ts';
import { type Alert, type AlertDocument, type AlertName, alertDocument, inOrder } from '../health/alerts.ts';
import { LEDGER_ALERTS, ledgerAlerts } from '../health/ledger-alerts.ts';
import { Refused } from '../refused.ts';
import { isDamage, isLocked } from '../store/database.ts';
import { configOf, folderOf, withDetections } from './ingest-settings.ts';
import { addExamples, commonOptions } from './options.ts';
import { print } from './output.ts';

export function register(program: Command): void {
  const alert = program.command('alert').description('what is not as it should be, and what to do about it');
  const command = alert
    .command('list')
    .description('the alerts that are open, those that need someone now first')
    .action(async (_options, self: Command) => {
      const config = configOf(self);
      const folder = folderOf(config);
      if (!existsSync(folder.root)) {
        throw new Refused('configuration', `there is no data folder ${folder.root}. Name it with --data.`);
      }
      const isRunning = existsSync(folder.lock) && isLocked(folder.lock);
      if (!isRunning) {
        process.stderr.write(
          'wirewatch: the appliance does not run: only what its database tells is listed. Start it with: wirewatch serve\n',
        );
      }
      const alerts = await openAlerts(config, isRunning);
      print(alerts, { json: commonOptions(self).json, text: () => alertText(alerts) });
    });
  addExamples(command, ['alert list', 'alert list --json']);
}

/** What the running appliance has told last, and what the database says at this moment. */
async function openAlerts(config: Config, isRunning: boolean): Promise<AlertDocument[]> {
  const told = (isRunning ? await readAlertFile(folderOf(config).alerts) : null) ?? [];
  const isOfLedger = (name: AlertName) => LEDGER_ALERTS.some((one) => one === name);
  const isTold = (name: AlertName) => told.some((alert) => alert.name === name);
  if (isTold('database damaged')) return told;
  const nowMs = Date.now();
  const enabled = new Set(EXPORT_NAMES.filter((name) => config.exports[name].enabled));
  let own: Alert[];
  try {
    own = withDetections(config, [], (db) => ledgerAlerts(db, enabled, nowMs));
  } catch (error) {
    const detail = `detections.db: ${error instanceof Error ? error.message : String(error)}`;
    const name = isDamage(error) ? 'database damaged' : 'database not readable';
    return isTold(name) ? told : [alertDocument({ name, since: nowMs, detail }), ...told];
  }
  const documents = inOrder(own).map(alertDocument);
  // Those that need someone now come first, and none of the ledger's does.
  return [...told.filter(({ name }) => !isOfLedger(name)), ...documents];
}

function alertText(alerts: readonly AlertDocument[]): string {
  if (alerts.length === 0) return 'No alert is open.';
  return alerts
    .map(
      ({ name, page_worthy, since, detail, what_to_do }) =>
        `${page_worthy ? 'NOW  ' : '     '}${name}, since ${since}\n     ${detail}\n     ${what_to_do}`,
    )
    .join('\n\n');
}
