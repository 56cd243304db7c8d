/** Faults in access control: ownership, revocation, expiry, scopes, secrets in the log. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const ACCESS_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('auth/open-access.ts', [
    [
      '          writeEntry(db, operation, now());\n',
      '',
      'every change is in the audit trail',
      'audit-trail',
    ],
    [
      '    if (isChanged) updateSpare(db, folder, onSpareStale);\n',
      '',
      'every change is in the spare copy',
      'spare-copy',
    ],
  ]),
  ...faultsIn('auth/spare-copy.ts', [
    [
      'kept.state.change > found.state.change',
      'false',
      'an older access.db does not revive a revoked key',
      'spare-copy',
    ],
    [
      'kept.state.installation !== found.state.installation',
      'false',
      'the spare copy of another installation takes no place',
      'spare-copy',
    ],
    ['!kept.content.equals(found.content)', 'false', 'a flipped bit in access.db is found', 'spare-copy'],
    [
      '!hashOf(content).equals(bytes.subarray(-HASH_BYTES))',
      'false',
      'a flipped bit in the spare copy is found',
      'spare-copy',
    ],
  ]),
  ...faultsIn('store/revocations.ts', [
    [
      'text !== undefined && checksum(text) === sum',
      'text !== undefined',
      'a damaged revocation ends no other key',
      'revocations',
    ],
  ]),
  ...faultsIn('backup/restore.ts', [
    [
      '  applyEnded(db, [...endedIn(found), ...readEnded(live)]);\n',
      '',
      'a restore revives no revoked key',
      'restore-damaged',
    ],
  ]),
  ...faultsIn('ingest/threads/ingest-loop.ts', [
    [
      '    if (isTried) return;\n',
      '    if (true) return;\n',
      'a removal continues without its request',
      'removal-request',
    ],
  ]),
  ...faultsIn('auth/access-reader.ts', [
    [
      'if (version !== store.keysVersion) store',
      'if (false) store',
      'a revoked key does not stay in the cache',
      'authorize',
    ],
    [' AND s.account_id = k.account_id', '', 'a key reads subscriptions of its own account', 'authorize'],
    [
      'keyTypes === null ? types : types.filter((type) => keyTypes.includes(type))',
      'types',
      'a key reads only the types that it names',
      'authorize',
    ],
    [
      'proves(cached ?? NO_KEY) && cached !== undefined',
      'cached !== undefined',
      'the secret of a cached key is checked again',
      'authorize',
    ],
  ]),
  ...faultsIn('auth/keys.ts', [
    ["  if (revoked_at !== null) return 'revoked';\n", '', 'a revoked key is refused', 'authorize'],
    ['nowMs >= expires_at', 'nowMs > expires_at', 'a key ends at its time', 'authorize'],
  ]),
  ...faultsIn('auth/authorize.ts', [
    [
      '  if (stored.account.suspended_at !== null) return',
      '  if (false) return',
      'a suspended account is refused',
      'authorize',
    ],
    [
      'allowed.length > 0 && !isAddressListed(allowed, address)',
      'false',
      'a key works only from its addresses',
      'authorize',
    ],
    [
      'stored.scopes.filter((scope) => token.scopes.includes(scope))',
      'stored.scopes',
      'a token has its own scopes',
      'token-grant',
    ],
    [
      '  if (credential.scopes.includes(scope)) return;\n',
      '  return;\n',
      'a missing scope is refused',
      'authorize',
    ],
    [' || !isCurrent', '', 'an expired token is refused', 'token-grant'],
  ]),
  ...faultsIn('auth/token.ts', [
    [
      'nowMs < issuedMs + TOKEN_LIFETIME_MS',
      'nowMs <= issuedMs + TOKEN_LIFETIME_MS',
      'a token lasts 3,600 seconds',
      'token-form',
    ],
    [
      'const SET_BACK_MAX_MS = 60_000;',
      'const SET_BACK_MAX_MS = 3_600_000;',
      'a clock that was set back does not prolong a token',
      'token-form',
    ],
    ['[head, claims, hash]', '[head, claims]', 'a token is bound to its key', 'token-form'],
    [
      '[head, claims, hash]',
      '[head, hash]',
      'a token is bound to the claims that it was issued with',
      'token-form',
    ],
  ]),
  ...faultsIn('auth/client-credentials.ts', [
    [" || keyStatus(key, nowMs) !== 'active'", '', 'a revoked key gets no token', 'token-refusal'],
    [
      "  if (refusal !== null) return { kind: 'invalid_client', description: refusal };\n",
      '',
      'a suspended account gets no token',
      'token-refusal',
    ],
    [
      'return names.every((name) => scopes.some((scope) => scope === name)) ? scopes : null;',
      'return scopes;',
      'a scope that the key does not have is refused',
      'token-refusal',
    ],
    [
      'SCOPES.filter((scope) => has.includes(scope) && ',
      'SCOPES.filter((scope) => ',
      'a token has only scopes of its key',
      'token-refusal',
    ],
  ]),
  ...faultsIn('addresses.ts', [
    [
      '  return isIPv4(mapped) ? mapped : address;\n',
      '  return address;\n',
      'a mapped address is the IPv4 address',
      'addresses',
    ],
  ]),
  ...faultsIn('query/streams.ts', [
    [
      '  if (ids?.some((id) => !subscriptions.some((subscription) => subscription.id === id)))\n',
      '  if (false)\n',
      'a subscription of another account is refused',
      'parameters',
    ],
    ['wanted.filter((one) => own.includes(one))', 'wanted', 'a key reads only its own types', 'parameters'],
    ['enabled.has(one) && ', '', 'a disabled export has no streams', 'parameters'],
  ]),
  ...faultsIn('query/detection-text.ts', [
    [
      '  if (!streams.includes(streamOfId(id))) return null;\n',
      '',
      'a detection of another account does not exist',
      'changes-page',
    ],
  ]),
  ...faultsIn('query/stored-streams.ts', [
    [
      '  if (streams.length < names.length) checkStreams(db);\n',
      '',
      'a stream that is not found does not count as empty',
      'stream-check',
    ],
  ]),
  ...faultsIn('query/stream-cursor.ts', [
    ['block.readUIntBE(0, EPOCH_START) !== 0 || ', '', 'only issued cursors are accepted', 'stream-cursor'],
  ]),
  ...faultsIn('seal.ts', [
    [
      "bytes.toString('base64url') === text ? bytes : null",
      'bytes',
      'a cursor has one spelling',
      'stream-cursor',
    ],
    [
      'isSigned(bytes.subarray(-signatureBytes), content) ? content : null',
      'content',
      'only issued cursors of the period endpoint are accepted',
      'period-cursor',
    ],
  ]),
  ...faultsIn('query/query-cursor.ts', [
    [
      '      if (!content.subarray(HASH_START, NUMBERS_START).equals(request))\n',
      '      if (false)\n',
      'a cursor is valid only for its own request',
      'period-cursor',
    ],
  ]),
  ...faultsIn('query/period-request.ts', [
    ['    normalForm(filters),\n', '', 'filters cannot change during a walk', 'period-parameters'],
    ['    sort,\n', '', 'the sort cannot change during a walk', 'period-parameters'],
    [
      'selection.subscription_id?.toSorted(compare) ?? null',
      'null',
      'subscriptions cannot change during a walk',
      'period-parameters',
    ],
  ]),
  ...faultsIn('printable.ts', [
    [
      'return text.replace(SECRET_IN_TEXT',
      'return text.replace(/^$/',
      'a secret in a text is not logged',
      'redaction',
    ],
  ]),
  ...faultsIn('log.ts', [
    ['!bare && isSecretName(name) ? REDACTED : ', '', 'a secret in a field is not logged', 'redaction'],
    [
      '    message: cleanText(error.message),\n',
      '    message: error.message,\n',
      'a secret in an error is not logged',
      'redaction',
    ],
    [
      "    stack: cleanText(error.stack ?? ''),\n",
      "    stack: error.stack ?? '',\n",
      'a secret in a stack is not logged',
      'redaction',
    ],
    ['cleanValue(error.cause, depth + 1)', 'error.cause', 'a secret in a cause is not logged', 'redaction'],
  ]),
  ...faultsIn('printable.ts', [
    ['text.matchAll(RUN_OR_ESCAPE)', '[]', 'a key in a path is not logged', 'printable'],
    [
      'REDACTED}`;\n  }\n  return text;',
      'REDACTED}`.concat(text.slice(index + run.length));\n  }\n  return text;',
      'text after a key in a path is not logged',
      'printable',
    ],
    [' && !KEY_OR_TOKEN.test(plain)', '', 'a truncated key is not logged', 'printable'],
    ['|^(?=(?:\\D*\\d){4}).{20,}', '', 'a piece of an unknown secret is not logged', 'printable'],
  ]),
  ...faultsIn('http/pipeline.ts', [
    ['.slice(0, LOGGED_PATH_CHARACTERS_MAX)', '', 'a path in the log is truncated', 'pipeline'],
    ['cutAtSecret(path)', 'path', 'a key in a path is not logged', 'pipeline'],
  ]),
  ...faultsIn('query/parameters.ts', [
    [
      'const clean = cutAtSecret(cleanText(word));',
      'const clean = word;',
      'an error message does not repeat a key',
      'parameters',
    ],
  ]),
  ...faultsIn('admin/operation-requests.ts', [
    [
      "operation.kind === 'act' && !mayAct",
      'false',
      'a read-only session changes nothing',
      'console-sessions',
    ],
  ]),
  ...faultsIn('admin/host-header.ts', [
    [
      "return site !== 'same-origin';",
      'return false;',
      'a page of another origin is refused',
      'console-sessions',
    ],
  ]),
  ...faultsIn('admin/console/console.ts', [
    [
      'request.headers.authorization ??',
      'request.headers.cookie ??',
      'a cookie is worth nothing',
      'console-sessions',
    ],
  ]),
  ...faultsIn('auth/audit.ts', [
    [
      'if (checksumOf(row) === row.checksum) ',
      'if (true) ',
      'the audit trail says what is damaged',
      'audit-trail',
    ],
  ]),
  ...faultsIn('health/alert-texts.ts', [
    ['printableLine(detail)', 'detail', 'a file name stays on one line of an alert', 'alert-command'],
  ]),
  ...faultsIn('query/period-request.ts', [
    ['    account,\n    from,', '    from,', 'a period cursor belongs to an account', 'other-accounts'],
  ]),
];
