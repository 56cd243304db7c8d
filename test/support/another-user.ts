/** Permissions do not restrict root: this user is for what must not be allowed. `setpriv` runs a command as it. */
export const OTHER_ID = 65_534;

export const AS_OTHER = [`--reuid=${OTHER_ID}`, `--regid=${OTHER_ID}`, '--clear-groups'];
