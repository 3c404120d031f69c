import "./button.css";
import type { ComponentProps, ReactNode } from "react";
import { Spinner } from "./spinner.tsx";

interface Appearance {
  readonly variant?: "primary" | "default" | "subtle" | "danger";
  readonly size?: "md" | "sm";
}

type ButtonProps = ComponentProps<"button"> &
  Appearance & {
    /** An icon before the text. */
    readonly icon?: ReactNode;
  };

/** A button with a text. */
export function Button(props: ButtonProps) {
  const { variant = "default", size = "md", icon, className = "", children, ...rest } = props;
  return (
    <button
      type="button"
      {...rest}
      className={`button ${className}`}
      data-variant={variant}
      data-size={size}
    >
      {icon}
      {children}
    </button>
  );
}

type IconButtonProps = Omit<ComponentProps<"button">, "aria-label"> &
  Appearance & {
    /** The accessible name, also shown as a tooltip. */
    readonly label: string;
    readonly isRound?: boolean;
    /** Shows a spinner in place of the icon, and ignores clicks. */
    readonly isLoading?: boolean;
  };

/** A button with an icon. */
export function IconButton(props: IconButtonProps) {
  const { label, variant = "subtle", size = "md", className = "", children, ...rest } = props;
  const { isRound = false, isLoading = false, ...attributes } = rest;
  return (
    <button
      type="button"
      title={label}
      {...attributes}
      aria-label={label}
      disabled={isLoading || attributes.disabled === true}
      className={`button icon-button ${isRound ? "round" : ""} ${className}`}
      data-variant={variant}
      data-size={size}
    >
      {isLoading ? <Spinner /> : children}
    </button>
  );
}
