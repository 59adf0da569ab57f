/** A dialog with the settings of the account: two-step sign-in, passkeys and sessions. */
import { useRef, useState } from "react";
import { useAuth } from "syncline/react";
import { AccountSettings } from "syncline/react/account-forms";

export function Account() {
  const { auth } = useAuth();
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);

  function open() {
    setOpen(true);
    dialog.current?.showModal();
  }

  return (
    <>
      <button type="button" onClick={open}>Account</button>
      <button type="button" onClick={() => void auth.signOut()}>Sign out</button>
      <dialog ref={dialog} className="account" aria-label="Account" onClose={() => setOpen(false)}>
        {isOpen && <AccountSettings />}
        <button type="button" className="close" onClick={() => dialog.current?.close()}>Close</button>
      </dialog>
    </>
  );
}
