"""Rules on Arrow columns: conversion of written data, casts of read data, defaults and Java's order of floats."""
