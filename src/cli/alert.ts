/** `wirewatch alert`: what is not as it should be, and what to do about it. */
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { Config } from '../config/load.ts';
import { EXPORT_NAMES } from '../detection/content-type.ts';
import { readAlertFile } from '../health/alert-file.ts';
import type { AlertDocument } from '../health/alerts.ts';
import { ledgerAlerts } from '../health/ledger-alerts.ts';
import { openAlerts } from '../health/open-alerts.ts';
import { Refused } from '../refused.ts';
import { isLocked } from '../store/locks.ts';
import { configOf, folderOf, withDetections } from './config.ts';
import { addExamples, commonOptions } from './options.ts';
import { print } from './output.ts';

export function register(alert: Command): void {
  const command = alert
    .command('list')
    .description('the alerts that are open, those that need someone now first')
    .action(async (_options, self: Command) => {
      const config = configOf(self);
      const folder = folderOf(config);
      if (!existsSync(folder.root)) {
        throw new Refused('configuration', `there is no data folder ${folder.root}. Name it with --data.`);
      }
      const isRunning = isLocked(folder.serveLock);
      if (!isRunning) {
        process.stderr.write(
          'wirewatch: the appliance does not run: only what its database tells is listed. Start it with: wirewatch serve\n',
        );
      }
      const alerts = await openAlertsOf(config, isRunning);
      print(alerts, { json: commonOptions(self).json, text: () => alertText(alerts) });
    });
  addExamples(command, ['alert list', 'alert list --json']);
}

/** What the running appliance has told last, and what the database says at this moment. */
export async function openAlertsOf(config: Config, isRunning: boolean): Promise<AlertDocument[]> {
  const told = (isRunning ? await readAlertFile(folderOf(config).alerts) : null) ?? [];
  const nowMs = Date.now();
  const enabled = new Set(EXPORT_NAMES.filter((name) => config.exports[name].enabled));
  return openAlerts(told, () => withDetections(config, [], (db) => ledgerAlerts(db, enabled, nowMs)), nowMs);
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
