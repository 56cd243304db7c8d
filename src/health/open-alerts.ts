/** All open alerts, as another process than the appliance sees them: from alerts.json and from the database. */
import { reasonOf } from '../refused.ts';
import { isDamage } from '../store/database-errors.ts';
import { type Alert, type AlertDocument, type AlertName, alertDocument, inOrder } from './alert-texts.ts';
import { LEDGER_ALERTS } from './ledger-alerts.ts';

/**
 * @param reported by the running appliance; empty if none runs
 * @param readLedger the alerts that follow from detections.db now
 */
export function openAlerts(
  reported: readonly AlertDocument[],
  readLedger: () => readonly Alert[],
  nowMs: number,
): AlertDocument[] {
  const isOfLedger = (name: AlertName) => LEDGER_ALERTS.some((one) => one === name);
  const isReported = (name: AlertName) => reported.some((alert) => alert.name === name);
  if (isReported('database damaged')) return [...reported];
  let own: readonly Alert[];
  try {
    own = readLedger();
  } catch (error) {
    const detail = `detections.db: ${reasonOf(error)}`;
    const name = isDamage(error) ? 'database damaged' : 'database not readable';
    return isReported(name)
      ? [...reported]
      : [alertDocument({ name, of: '', since: nowMs, detail }), ...reported];
  }
  const documents = inOrder(own).map(alertDocument);
  // Urgent ones come first, and none from the ledger is urgent.
  return [...reported.filter(({ name }) => !isOfLedger(name)), ...documents];
}
