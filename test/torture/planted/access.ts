/** Faults in access control: ownership, revocation, expiry, scopes, secrets in the log. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const ACCESS_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('auth/open-access.ts', 'audit-trail', {
    '[-writeEntry(db, operation, now());-]': 'every change is in the audit trail',
  }),
  ...faultsIn('auth/open-access.ts', 'spare-copy', {
    '[-if (isChanged) updateSpare(db, folder, onSpareStale);-]': 'every change is in the spare copy',
  }),
  ...faultsIn('auth/spare-copy.ts', 'spare-copy', {
    '[-kept.state.change > found.state.change-]{+false+}': 'an older access.db does not revive a revoked key',
    '[-!kept.content.equals(found.content)-]{+false+}': 'a flipped bit in access.db is found',
  }),
  ...faultsIn('store/revocations.ts', 'revocations', {
    'text !== undefined[- && checksum(text) === sum-]': 'a damaged revocation ends no other key',
  }),
  ...faultsIn('copy/restore.ts', 'restore-damaged', {
    '[-applyEnded(db, ended);-]': 'a restore revives no revoked key',
  }),
  ...faultsIn('ingest/apply/remove-rows.ts', 'removal-request', {
    'if ([-isTried-]{+true+}) return;': 'a removal continues without its request',
  }),
  ...faultsIn('auth/access-reader.ts', 'authorize', {
    'if ([-version !== store.keysVersion-]{+false+}) store': 'a revoked key does not stay in the cache',
    '[-AND s.account_id = k.account_id-]': 'a key reads subscriptions of its own account',
    '[-proves(cached ?? NO_KEY) && -]cached !== undefined': 'the secret of a cached key is checked again',
  }),
  ...faultsIn('auth/keys.ts', 'authorize', {
    "[-if (revoked_at !== null) return 'revoked';-]": 'a revoked key is refused',
  }),
  ...faultsIn('auth/authorize.ts', 'authorize', {
    'if ([-stored.account.suspended_at !== null-]{+false+}) return': 'a suspended account is refused',
    '[-allowed.length > 0 && !isAddressListed(allowed, address)-]{+false+}':
      'a key works only from its addresses',
  }),
  ...faultsIn('auth/authorize.ts', 'every-credential', {
    '[-if (credential.scopes.includes(scope)) -]return;': 'a missing scope is refused',
  }),
  ...faultsIn('auth/authorize.ts', 'token-grant', {
    'stored.scopes[-.filter((scope) => token.scopes.includes(scope))-]': 'a token has its own scopes',
  }),
  ...faultsIn('auth/token.ts', 'token-form', {
    '[head, claims[-, hash-]]': 'a token is bound to its key',
  }),
  ...faultsIn('auth/client-credentials.ts', 'token-refusal', {
    "[-|| keyStatus(key, nowMs) !== 'active'-]": 'a revoked key gets no token',
    'return [-names.every((name) => scopes.some((scope) => scope === name)) ? scopes : null-]{+scopes+};':
      'a scope that the key does not have is refused',
  }),
  ...faultsIn('addresses.ts', 'addresses', {
    'return [-isIPv4(mapped) ? mapped : -]address;': 'a mapped address is the IPv4 address',
  }),
  ...faultsIn('query/streams.ts', 'parameters', {
    'if ([-ids?.some((id) => !subscriptions.some((subscription) => subscription.id === id))-]{+false+})':
      'a subscription of another account is refused',
  }),
  ...faultsIn('query/detection-text.ts', 'changes-page', {
    '[-if (!streams.includes(streamOfId(id))) return null;-]':
      'a detection of another account does not exist',
  }),
  ...faultsIn('query/stored-streams.ts', 'stream-check', {
    '[-if (streams.length < names.length) checkStreams(db);-]':
      'a stream that is not found does not count as empty',
  }),
  ...faultsIn('query/stream-cursor.ts', 'cursors', {
    '[-block.readUIntBE(0, EPOCH_START) !== 0 ||-]': 'only issued cursors are accepted',
  }),
  ...faultsIn('seal.ts', 'cursors', {
    '[-isSigned(bytes.subarray(-signatureBytes), content) ? content : null-]{+content+}':
      'only issued cursors of the period endpoint are accepted',
  }),
  ...faultsIn('query/query-cursor.ts', 'cursors', {
    'if ([-!content.subarray(HASH_START, NUMBERS_START).equals(request)-]{+false+})':
      'a cursor is valid only for its own request',
  }),
  ...faultsIn('query/period-request.ts', 'period-parameters', {
    '[-normalForm(filters),-]': 'filters cannot change during a walk',
  }),
  ...faultsIn('query/period-request.ts', 'other-accounts', {
    '[-account,\n    -]from,': 'a period cursor belongs to an account',
  }),
  ...faultsIn('printable.ts', 'redaction', {
    'return text.replace([-SECRET_IN_TEXT-]{+/^$/+}': 'a secret in a text is not logged',
  }),
  ...faultsIn('printable.ts', 'printable', {
    '[-text.matchAll(RUN_OR_ESCAPE)-]{+[]+}': 'a key in a path is not logged',
    '[-|^(?=(?:\\D*\\d){4}).{20,}-]': 'a piece of an unknown secret is not logged',
  }),
  ...faultsIn('logger.ts', 'redaction', {
    'message: [-cleanText(error.message)-]{+error.message+},': 'a secret in an error is not logged',
  }),
  ...faultsIn('query/parameters.ts', 'parameters', {
    'const clean = [-cutAtSecret(cleanText(word))-]{+word+};': 'an error message does not repeat a key',
  }),
  ...faultsIn('admin/operation-requests.ts', 'console-sessions', {
    "[-operation.kind === 'act' && !mayAct-]{+false+}": 'a read-only session changes nothing',
  }),
  ...faultsIn('admin/host-header.ts', 'console-sessions', {
    "return [-site !== 'same-origin'-]{+false+};": 'a page of another origin is refused',
  }),
  ...faultsIn('admin/console/console.ts', 'console-sessions', {
    'request.headers.[-authorization-]{+cookie+} ??': 'a cookie is worth nothing',
  }),
  ...faultsIn('auth/audit.ts', 'audit-trail', {
    'if ([-checksumOf(row) === row.checksum-]{+true+})': 'the audit trail says what is damaged',
  }),
  ...faultsIn('health/alert-texts.ts', 'alert-command', {
    '[-printableLine(detail)-]{+detail+}': 'a file name stays on one line of an alert',
  }),
];
