/** Every alert that is open, as a process beside the appliance can tell: from its file, and from the database. */
import { reasonOf } from '../refused.ts';
import { isDamage } from '../store/database-errors.ts';
import { type Alert, type AlertDocument, type AlertName, alertDocument, inOrder } from './alerts.ts';
import { LEDGER_ALERTS } from './ledger-alerts.ts';

/**
 * @param told by the running appliance; empty where none runs
 * @param readLedger the alerts that follow from detections.db, at this moment
 */
export function openAlerts(
  told: readonly AlertDocument[],
  readLedger: () => readonly Alert[],
  nowMs: number,
): AlertDocument[] {
  const isOfLedger = (name: AlertName) => LEDGER_ALERTS.some((one) => one === name);
  const isTold = (name: AlertName) => told.some((alert) => alert.name === name);
  if (isTold('database damaged')) return [...told];
  let own: readonly Alert[];
  try {
    own = readLedger();
  } catch (error) {
    const detail = `detections.db: ${reasonOf(error)}`;
    const name = isDamage(error) ? 'database damaged' : 'database not readable';
    return isTold(name) ? [...told] : [alertDocument({ name, since: nowMs, detail }), ...told];
  }
  const documents = inOrder(own).map(alertDocument);
  // Those that need someone now come first, and none of the ledger's does.
  return [...told.filter(({ name }) => !isOfLedger(name)), ...documents];
}
